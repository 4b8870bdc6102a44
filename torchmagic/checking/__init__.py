"""Run the rules over the facts: isolate their failures, sort and silence what they find, and make the report."""

from torchmagic.checking.engine import check
from torchmagic.checking.facts import Facts
from torchmagic.checking.memory import Memory
from torchmagic.checking.rule import Rule, rules
from torchmagic.namespace import take_snapshot

__all__ = ["Facts", "Memory", "Rule", "check", "rules", "take_snapshot"]
