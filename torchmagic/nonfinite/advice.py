"""What to say of the operation to blame: where its argument stands, what it makes of that, and what to do."""

from __future__ import annotations

from torchmagic.nonfinite.blame import Suspect

_ROOTS = frozenset({"sqrt"})
_ANGLES = frozenset({"acos", "arccos", "asin", "arcsin"})


def blame_words(suspect: Suspect, repair: str | None) -> str:
    """Name the operation, the evidence and the way out; `repair` is the argument as the fix writes it."""
    name, edge = suspect.hazard.name, f", {suspect.edge}" if suspect.edge else ""
    code = f": `{repair}`" if repair is not None else ""
    return f"`{name}` is to blame{edge}{_reason(suspect)}: {_way_out(suspect)}{code}"


def _reason(suspect: Suspect) -> str:
    """Say what the operation makes of its argument, where that differs between its edge and what lies beyond."""
    name = suspect.hazard.name
    if name == "rsqrt":
        return "" if suspect.edge else ", infinite at 0 and NaN below"
    if name not in _ROOTS | _ANGLES:
        return ""
    if suspect.edge:
        return ", where it is NaN" if suspect.beyond else ", where its derivative is infinite"
    edge, beyond = ("0", "below") if name in _ROOTS else ("1 and -1", "beyond")
    if suspect.differentiated:
        return f", NaN {beyond} {edge} and with an infinite derivative there"
    return f", NaN {beyond} {edge}"


def _way_out(suspect: Suspect) -> str:
    """Return the advice, for all operations of the line that need it."""
    advice, names = suspect.hazard.advice, suspect.alike
    if len(names) < 2:
        return advice
    many = "both" if len(names) == 2 else f"all {len(names)}"
    kinds = list(dict.fromkeys(names))
    them = f"{many} `{kinds[0]}`s" if len(kinds) == 1 else " and ".join(f"`{kind}`" for kind in kinds)
    return advice.replace("its argument", f"the arguments of {them}").replace("the divisor", f"{many} divisors")
