"""Containers and objects that were copied without the tensors and arrays in them."""

from __future__ import annotations

import ast

from torchmagic.sharing.copies import copied_value, copies_shallowly, deep_copied
from torchmagic.sharing.holders import Capture
from torchmagic.sharing.pairs import Pair
from torchmagic.sharing.timeline import CONSTRUCTORS
from torchmagic.sharing.verdict import Sharing, first_values, kind_word
from torchmagic.sharing.words import doer, now_holds, other_side
from torchmagic.source.refs import bare_name

_LISTS = frozenset({"list", "tuple"})


def shallow_copy(pair: Pair) -> Sharing | None:
    """Judge a container or object that was copied without what is in it."""
    timeline, new, old = pair.timeline, pair.new, pair.old
    capture = timeline.capture_of(new)
    if new.place.parent is None or old.place.parent is None or capture is None or not timeline.is_newer(new, old):
        return None
    same_slot = new.place.key == old.place.key and type(new.place.owner) is type(old.place.owner)
    if not same_slot or new.place.owner is old.place.owner:
        return None
    is_copy = copies_shallowly(capture.write.value)
    if not is_copy and not _copies_by_hand(pair, capture):
        return None
    for change in pair.writes:
        inside = any(capture.outer in context.steps for context in change.contexts)
        told_apart = is_copy or change.names(new) != change.names(old)
        if told_apart and (inside or timeline.follows(change, capture)):
            step, made = timeline.maker(capture)
            fix = copied_value(timeline, step, made, new.seen, pair.group) or deep_copied(timeline, step, made)
            word, other = kind_word(new.seen), other_side(change, new, old)
            return Sharing(
                subject=new.text,
                message=f"`{new.text}`: the same {word} as `{old.text}`, which the copy did not copy; "
                f"{doer(change)} writes both{now_holds(other, change, timeline)}; copy the {word} too",
                line=timeline.line_of(step),
                others=(old.text,),
                fix=fix,
                evidence={"written_on_line": change.line, "first_values": first_values(other.seen)},
                topic=(new.container or new.place).text,
            )
    return None


def _copies_by_hand(pair: Pair, capture: Capture) -> bool:
    """Tell whether a statement makes one thing out of another that has the variable of the other holder in it."""
    if pair.new.place.root == pair.old.place.root:
        return False
    if capture.write.value is None or isinstance(capture.write.value, ast.Subscript):
        return False
    value = capture.write.value
    if capture.step.scope.name in CONSTRUCTORS and isinstance(value, ast.Call) and bare_name(value.func) in _LISTS:
        return False  # `self.params = list(params)`: an object that is given things to work on
    steps = [step for context in capture.contexts for step in context.steps]
    return any(pair.timeline.mentions(step, pair.old.place.root) for step in steps)
