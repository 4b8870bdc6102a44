"""Read the memory of the devices, and attribute it to names."""

from torchmagic.measuring.look import look, read_devices

__all__ = ["look", "read_devices"]
