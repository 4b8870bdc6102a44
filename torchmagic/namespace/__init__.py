"""Walk the live objects that the user's variables reach, without calling anything of theirs."""

from torchmagic.namespace.collector import paused_collector
from torchmagic.namespace.places import Place, Role
from torchmagic.namespace.snapshot import Snapshot, take_snapshot, version_of
from torchmagic.namespace.undisturbed import undisturbed
from torchmagic.namespace.walk import Namespace, Seen, walk

__all__ = [
    "Namespace",
    "Place",
    "Role",
    "Seen",
    "Snapshot",
    "paused_collector",
    "take_snapshot",
    "undisturbed",
    "version_of",
    "walk",
]
