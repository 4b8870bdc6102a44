"""non-finite: where NaN and infinity began, whatever shape the code has; what deals with them is left alone."""

from __future__ import annotations

import pytest

from tests.checks.non_finite_origins import DEALT_WITH, ORIGINS
from tests.checks.test_non_finite import SETUP
from tests.looking import look

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy and torch warn of some of these themselves


@pytest.mark.parametrize(("cell", "expected"), ORIGINS.values(), ids=ORIGINS)
def test_the_origin_is_named(cell: str, expected: tuple[str, int, str]) -> None:
    """One finding, on the value where the NaN or infinity began, with its line and its cause."""
    report = look(SETUP + "import pandas as pd\n", cell)

    found = [(f.subject, f.line, f.cause) for f in report.findings if f.rule == "non-finite" and f.level != "note"]
    assert found == [expected]
    assert report.failures == ()


@pytest.mark.parametrize("cell", DEALT_WITH.values(), ids=DEALT_WITH)
def test_what_the_text_deals_with_is_left_alone(cell: str) -> None:
    """Masks put before the operation, parts that are not bad, logarithms of probabilities: at most a note."""
    report = look(SETUP + "import pandas as pd\n", cell)

    assert [f.message for f in report.findings if f.rule == "non-finite" and f.level != "note"] == []
    assert report.failures == ()
