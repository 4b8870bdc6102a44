"""One look: walk, run the rules, silence, sort, report."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from torchmagic.checking.facts import Facts
from torchmagic.checking.memory import Memory
from torchmagic.checking.rule import Rule, rules
from torchmagic.findings import LEVELS, Finding, Followed, Level, Looked, at_least
from torchmagic.namespace import Namespace, Snapshot, undisturbed, walk
from torchmagic.report import Report
from torchmagic.source import SourceText
from torchmagic.source.text import EVERY_RULE
from torchmagic.tracing.compiled import compiled_names, unseen_words

if TYPE_CHECKING:
    from torchmagic.tracing.trace import Trace

_NO_TORCH = "torch has not been imported, so there is nothing of PyTorch to look at"
_LONGEST_FAILURE = 120


def check(
    namespace: Mapping[str, Any],
    *,
    source: str | None = None,
    error: BaseException | None = None,
    device: str | None = None,
    only: Iterable[str] = (),
    ignore: Iterable[str] = (),
    level: Level = "warning",
    before: Snapshot | None = None,
    filename: str = "<source>",
    hidden: Collection[str] = (),
    memory: Memory | None = None,
    trace: Trace | None = None,
    title_of: Callable[[str], str] | None = None,
) -> Report:
    """Look for mistakes among the variables of a namespace; see `torchmagic.check`.

    Args:
        namespace: variable names and values.
        source: the code that filled it, with editor lines.
        error: the exception that ended the code.
        device: where tensors should be; inferred when left out.
        only: run these rules alone.
        ignore: leave these rules out.
        level: the least level that counts as a finding.
        before: what `take_snapshot` noted before the code ran.
        filename: the name the code was compiled under, which its functions carry.
        hidden: variables that are not the user's.
        memory: what earlier reports showed; findings that still stand are then counted instead of repeated.
        trace: what a watch saw while the code ran; it is forgotten with the look.
        title_of: the name people know a file by, such as `In[3]` for a cell; empty when it has none.

    Raises:
        ValueError: a rule, level or device that does not exist.
    """
    chosen = choose_rules(only, ignore)
    require_level(level)
    start = time.perf_counter()
    if "torch" not in sys.modules:
        return Report(skipped=(_NO_TORCH,))
    with undisturbed():
        _require_device(device)
        found = walk(namespace, hidden=hidden)
        text = SourceText.read(source, filename) if source is not None else None
        facts = Facts(
            found,
            source=text,
            error=error,
            before=before,
            device=device,
            memory=memory,
            trace=trace,
            title_of=title_of,
        )
        try:
            found.skipped += [*_unheard(chosen, text), *_unseen(facts)]
            raw, failures = _run(chosen, facts)
            return _report(facts, raw, failures, level, time.perf_counter() - start)
        finally:
            facts.forget()
            if trace is not None:
                trace.forget()


def require_level(level: str) -> None:
    """Raise when a level does not exist.

    Raises:
        ValueError: a name that is no level's.
    """
    if level not in LEVELS:
        raise ValueError(f"no level named {level!r}; the levels are {', '.join(LEVELS)}")


def choose_rules(only: Iterable[str], ignore: Iterable[str]) -> dict[str, type[Rule]]:
    """Return the rules to run.

    Raises:
        ValueError: a name that is no rule's.
    """
    known = rules()
    wanted, unwanted = list(only), list(ignore)
    for name in [*wanted, *unwanted]:
        if name not in known:
            raise ValueError(_no_such_rule(name))
    chosen = {name: rule for name, rule in known.items() if (not wanted or name in wanted) and name not in unwanted}
    if not chosen:
        raise ValueError("no rule is left to run")
    return chosen


def _no_such_rule(name: str) -> str:
    close = get_close_matches(name, rules(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"the rules are {', '.join(rules())}"
    return f"no rule named {name!r}; {hint}"


def _unheard(chosen: dict[str, type[Rule]], text: SourceText | None) -> list[str]:
    """Say which rules had no text to go by, and which comments silence a rule that does not exist."""
    mute = ", ".join(name for name, rule in chosen.items() if rule.needs_text)
    if text is None:
        return [f"{mute} judge the text of a cell; run it under `%%torchcheck`"] if mute else []
    if text.tree is None:
        return [f"{mute} judge the text of the cell, which does not parse"] if mute else []
    return [
        f"the comment in line {line}: {_no_such_rule(name)}"
        for line, names in text.silenced.items()
        for name in sorted(names - rules().keys() - {EVERY_RULE})
    ]


def _unseen(facts: Facts) -> list[str]:
    """Say what a trace could not follow."""
    if facts.trace is None:
        return []
    return [*facts.trace.unseen, *unseen_words(list(compiled_names(facts.found.names, facts.read_names)))]


def _require_device(device: str | None) -> None:
    torch = sys.modules["torch"]
    if device is not None:
        try:
            torch.device(device)
        except RuntimeError:
            raise ValueError(f"no device named {device!r}; such as 'cpu', 'cuda' or 'cuda:1' is meant") from None


def _run(chosen: dict[str, type[Rule]], facts: Facts) -> tuple[list[Finding], list[str]]:
    findings: list[Finding] = []
    failures: list[str] = []
    for name, rule_class in chosen.items():
        rule = rule_class()
        try:
            subjects = list(rule.subjects(facts))
        except Exception as problem:
            failures.append(_failure(name, problem))
            continue
        for subject in subjects:
            try:
                findings += rule.judge(facts, subject)
            except Exception as problem:
                failures.append(_failure(name, problem))
    return findings, list(dict.fromkeys(failures))


def _failure(name: str, problem: Exception) -> str:
    first_line = next(iter(str(problem).splitlines()), "")
    text = f"{name}: {type(problem).__name__}: {first_line}"
    return text if len(text) <= _LONGEST_FAILURE else f"{text[: _LONGEST_FAILURE - 3]}..."


def _report(facts: Facts, raw: list[Finding], failures: list[str], level: Level, seconds: float) -> Report:
    source = facts.source
    heard = [f for f in raw if source is None or not source.is_silenced(f.rule, f.line)]
    marked = [dataclasses.replace(f, earlier=not f.explains and _is_earlier(f, facts)) for f in heard]
    ordered = sorted(marked, key=lambda f: (f.earlier, -LEVELS.index(f.level), f.line or sys.maxsize))
    findings = [f for f in ordered if f.explains or at_least(f.level, level)]
    standing = 0
    if facts.memory is not None:
        fresh = [f for f in findings if not _still_stands(f, facts)]
        standing = len(findings) - len(fresh)
        facts.memory.replace_shown(findings)
        findings = fresh
    lessons = {name: rule.lesson() for name, rule in rules().items() if any(f.rule == name for f in ordered)}
    return Report(
        findings=tuple(findings),
        notes=tuple(f for f in ordered if not f.explains and not at_least(f.level, level)),
        still_standing=standing,
        silenced=len(raw) - len(heard),
        looked=_looked(facts.found, seconds),
        skipped=tuple(facts.found.skipped),
        failures=tuple(failures),
        source_lines=source.lines if source is not None else (),
        lessons=lessons,
        failed=issubclass(type(facts.error), Exception),  # an interrupt is no failure
        followed=Followed(facts.trace.operations, facts.trace.slowdown) if facts.trace is not None else None,
    )


def _is_earlier(finding: Finding, facts: Facts) -> bool:
    """Tell whether neither the finding's variable nor one that it reached is this cell's business."""
    return all(facts.is_earlier(_root(name)) for name in (finding.subject, *finding.consequences))


def _still_stands(finding: Finding, facts: Facts) -> bool:
    """Tell whether a finding was shown before and its variable is as it was; an error is explained each time."""
    known = not finding.explains and facts.memory is not None and facts.memory.was_shown(finding)
    return known and _root(finding.subject) not in facts.changed_names


def _root(subject: str) -> str:
    return subject.split(".", 1)[0].split("[", 1)[0]


def _looked(found: Namespace, seconds: float) -> Looked:
    counts = Counter(seen.kind for seen in found.seen.values())
    top_modules = sum(1 for seen in found.of_kind("module") if all(place.role != "submodule" for place in seen.places))
    return Looked(
        tensors=counts["tensor"],
        arrays=counts["array"],
        modules=top_modules,
        optimizers=counts["optimizer"],
        bytes=found.storage_bytes(),
        seconds=seconds,
    )
