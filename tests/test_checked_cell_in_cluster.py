"""`%%px` sends a checked cell to the engines of a real cluster, and shows their reports."""

from __future__ import annotations

import re

import ipyparallel
import pytest

from tests.mistakes import LOST

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Return a client of a cluster of one engine, whose settings live in a folder of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    with ipyparallel.Cluster(n=1, profile_dir=str(folder), log_level=50) as client:
        yield client


@pytest.fixture
def px(cluster, shell, run):
    """Return a function that runs a cell in a shell with a cluster, whose engine has the extension too."""
    cluster.activate()
    assert run("%%px --progress-after 60\n%load_ext torchmagic\nimport torch").result.success
    return run


def test_the_engine_reports(px):
    """With the lines of the cell that it got, after what the cell returns."""
    ran = px("%%px\n%%torchcheck\n" + LOST + "x")

    assert re.search(r"Out\[0:\d+\]: *tensor\(\[2\., 2\.\]\)\n\[output:0\]\ntorchcheck: 1 finding ", ran.out)
    assert "line 3 · discarded-transfer" in ran.out
    assert ran.reports == 1


def test_the_engine_reports_when_it_is_asked(px):
    """A cell that was sent without waiting shows its report with its result."""
    assert px("%%px --noblock\n%%torchcheck\n" + LOST).reports == 0
    assert "line 3 · discarded-transfer" in px("%pxresult").out


def test_both_sides_report(px):
    """The cell runs here first."""
    ran = px("%%px --local\n%%torchcheck\n" + LOST)
    here, there = ran.out.split("[output:0]\n")

    assert "line 3 · discarded-transfer" in here
    assert "line 3 · discarded-transfer" in there
    assert ran.reports == 2


def test_a_cell_that_fails_on_the_engine_is_reported_on(px):
    """Its error has the lines of the cell that it got, and the first is shown as typed."""
    ran = px("%%px\n%%torchcheck\n1/0")

    assert not ran.result.success
    assert re.search(r"1 #%%torchcheck\n-+> 2 1/0\n", ran.out + ran.err)
    assert ran.reports == 1


def test_strict_fails_the_cell_on_the_engine(px):
    """And so the cell that sent it."""
    ran = px("%%px\n%%torchcheck --strict\n" + LOST)

    assert not ran.result.success
    assert "StrictError: torchcheck: 1 finding" in ran.out + ran.err
    assert ran.reports == 1


def test_the_magic_above_checks_the_names_here(px, shell):
    """The engine runs the bare cell."""
    ran = px("%%torchcheck\n%%px\nprint('there')")

    assert ran.out.index("there") < ran.out.index("torchcheck: nothing wrong")
    assert ran.reports == 1
