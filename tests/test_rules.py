"""Every rule flags its bad cell, and is quiet about its good cell."""

from __future__ import annotations

from typing import Any

import pytest

import torchmagic
from tests.looking import look
from torchmagic.checking import rules


@pytest.fixture(params=sorted(rules()))
def rule(request: pytest.FixtureRequest) -> Any:
    """Each rule in turn."""
    return rules()[request.param]


def test_bad_cell_is_flagged(rule: Any) -> None:
    """The rule, and no other, speaks about its bad cell."""
    report = look(rule.lesson().bad)

    assert {finding.rule for finding in report.findings} == {rule.name()}
    assert report.failures == ()


def test_good_cell_is_quiet(rule: Any) -> None:
    """No rule speaks about the good cell."""
    report = look(rule.lesson().good)

    assert [str(finding) for finding in report.findings] == []
    assert report.failures == ()


def test_lesson_is_complete(rule: Any) -> None:
    """A rule says what, why and what to do."""
    lesson = rule.lesson()

    assert lesson.summary.endswith(".")
    assert len(lesson.reasons.split("\n\n")) >= 2


def test_check_without_source_uses_the_live_objects_alone() -> None:
    """A namespace can be looked at without any text."""
    import torch

    report = torchmagic.check({"x": torch.ones(3)})

    assert len(report) == 0
    assert report.looked.tensors == 1
