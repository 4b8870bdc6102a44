"""What a rule is, and where the rules are found."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from torchmagic.findings import Finding, Lesson

if TYPE_CHECKING:
    from torchmagic.checking.facts import Facts

_PACKAGE = "torchmagic.checks"


class Rule(ABC):
    """One kind of mistake. The docstring of a rule is its lesson: what, then why, then what to do.

    A rule names its subjects, then judges each by itself, so that one odd object cannot silence it for the others.
    """

    needs_text: ClassVar[bool] = False
    """Whether the rule has nothing to go by without the text of a cell."""
    bad: ClassVar[str]
    """A cell that the rule flags."""
    good: ClassVar[str]
    """The same cell, put right."""

    @abstractmethod
    def subjects(self, facts: Facts) -> Iterable[Any]:
        """Return what there is to judge."""

    @abstractmethod
    def judge(self, facts: Facts, subject: Any) -> Iterator[Finding]:
        """Yield the findings about one subject."""

    @classmethod
    def name(cls) -> str:
        """The rule's name, from its class: `GradHistory` is `grad-history`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    @classmethod
    def lesson(cls) -> Lesson:
        """The rule's docstring and cells, for a person to read."""
        summary, _, reasons = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
        return Lesson(
            cls.name(), " ".join(summary.split()), reasons, inspect.cleandoc(cls.bad), inspect.cleandoc(cls.good)
        )


@functools.lru_cache(maxsize=1)
def _discovered() -> dict[str, type[Rule]]:
    package = importlib.import_module(_PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        importlib.import_module(module.name)
    found = {rule.name(): rule for rule in Rule.__subclasses__() if rule.__module__.startswith(f"{_PACKAGE}.")}
    return dict(sorted(found.items()))


def rules() -> dict[str, type[Rule]]:
    """Return every rule by its name. Rules are found in `torchmagic.checks`, one a file."""
    return dict(_discovered())
