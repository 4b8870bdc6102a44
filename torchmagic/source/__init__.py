"""Read the cell's text: what it binds, stores, writes in place and calls, on which line and in which loop."""

from torchmagic.source.calls import Call, Context
from torchmagic.source.program import Program
from torchmagic.source.refs import ANY, Ref, reads, ref_of
from torchmagic.source.scopes import Scope, Step, Unit
from torchmagic.source.text import SourceText
from torchmagic.source.writes import Write, writes_of

__all__ = [
    "ANY", "Call", "Context", "Program", "Ref", "Scope", "SourceText", "Step", "Unit", "Write",
    "reads", "ref_of", "writes_of",
]  # fmt: skip
