"""The values every check produces: a finding, its fix, and what was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Level = Literal["note", "warning", "error"]

LEVELS: Final[tuple[Level, ...]] = ("note", "warning", "error")
"""From least to most serious. error: wrong results or a crash are certain. warning: very likely a mistake.
note: true, and mostly harmless."""


def at_least(level: Level, least: Level) -> bool:
    """Tell whether `level` is as serious as `least` or more."""
    return LEVELS.index(level) >= LEVELS.index(least)


@dataclass(frozen=True)
class Fix:
    """The text that replaces the finding's line.

    `replacement` has no indentation of its own and may be several lines. `caveat` is one sentence where behaviour
    may change, else empty.
    """

    replacement: str
    caveat: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, as a person would say it.

    `subject` is the path a person would type (`model.head.weight.grad`). `line` is the line of the checked cell as the
    editor numbers it, or None when the place is not in the cell. `cause` is filled by rules that tell causes apart.
    `others` are the paths of the other holders or the counterpart. `evidence` holds plain numbers, words and lists.
    `consequences` are paths that are wrong only because the subject is. `earlier` marks findings about names that the
    checked cell neither assigned nor changed. `operands` describes, name by name, what stands on the line that failed.
    `explains` marks what says why the cell ended with its error: it is shown whatever its level. `details` are further
    sentences for whoever unfolds the finding.
    """

    rule: str
    level: Level
    subject: str
    message: str
    line: int | None = None
    cause: str | None = None
    others: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    fix: Fix | None = None
    consequences: tuple[str, ...] = ()
    earlier: bool = False
    operands: Mapping[str, str] = field(default_factory=dict)
    explains: bool = False
    details: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values that `json` can write."""
        return {
            "rule": self.rule,
            "level": self.level,
            "subject": self.subject,
            "message": self.message,
            "line": self.line,
            "cause": self.cause,
            "others": list(self.others),
            "evidence": dict(self.evidence),
            "fix": None if self.fix is None else {"replacement": self.fix.replacement, "caveat": self.fix.caveat},
            "consequences": list(self.consequences),
            "earlier": self.earlier,
            "operands": dict(self.operands),
            "explains": self.explains,
            "details": list(self.details),
        }


@dataclass(frozen=True)
class Looked:
    """What a report is about: how many objects of each kind, their bytes (each storage once), and the time taken."""

    tensors: int = 0
    arrays: int = 0
    modules: int = 0
    optimizers: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as values that `json` can write."""
        return {
            "tensors": self.tensors,
            "arrays": self.arrays,
            "modules": self.modules,
            "optimizers": self.optimizers,
            "bytes": self.bytes,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Followed:
    """How many operations of the cell were followed, and how many times as long as without that it took, roughly."""

    operations: int
    slowdown: float

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that `json` can write."""
        return {"operations": self.operations, "slowdown": self.slowdown}


@dataclass(frozen=True)
class Lesson:
    """What a rule teaches: its name, the one-sentence summary, the reasons, and a bad and a good cell."""

    rule: str
    summary: str
    reasons: str
    bad: str
    good: str


@dataclass(frozen=True)
class Inspection:
    """The outcome of one look at a namespace, before anybody decides how it looks.

    `findings` holds every finding at or above `level`, and what explains the cell's error; `notes` holds the others.
    `still_standing` counts findings shown in an earlier report and unchanged since. `silenced` counts findings that a
    comment or an option silenced.
    `skipped` says, a sentence each, what was not looked at and why; `failures` names rules that failed.
    `source_lines` are the lines of the checked cell, so that a fix can be shown beside the line it replaces. `failed`
    says that the cell ended with an error. `followed` is there when the cell ran under `--trace`.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    still_standing: int = 0
    silenced: int = 0
    looked: Looked = field(default_factory=Looked)
    skipped: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    source_lines: tuple[str, ...] = ()
    lessons: Mapping[str, Lesson] = field(default_factory=dict)
    failed: bool = False
    followed: Followed | None = None

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        """A report is true when it found something."""
        return bool(self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as values that `json` can write."""
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": [finding.to_dict() for finding in self.notes],
            "still_standing": self.still_standing,
            "silenced": self.silenced,
            "looked": self.looked.to_dict(),
            "skipped": list(self.skipped),
            "failures": list(self.failures),
            "followed": None if self.followed is None else self.followed.to_dict(),
        }
