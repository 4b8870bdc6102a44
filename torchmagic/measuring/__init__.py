"""Read the memory of the devices, and attribute it to names."""

from torchmagic.measuring.look import NoSuchPathError, look, read_devices
from torchmagic.measuring.watching import MemoryWatch

__all__ = ["MemoryWatch", "NoSuchPathError", "look", "read_devices"]
