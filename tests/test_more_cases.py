"""Other shapes of the same mistakes, and correct code that looks like them: for each kind of case, several more.

The fields of a case are those of `cases.jsonl`; `known_miss` marks what is not judged rightly yet.
"""

from __future__ import annotations

import json
from pathlib import Path

import IPython
import pytest

from tests.test_cases import missed_and_false, run, wrong_places

MORE = [json.loads(line) for line in (Path(__file__).parent / "more_cases.jsonl").read_text().splitlines()]

pytestmark = pytest.mark.skipif(IPython.version_info < (8,), reason="no shell runs here: one environment is enough")


@pytest.fixture(autouse=True)
def torch_as_it_was():
    """What a case changes in torch is put back."""
    import torch

    torch.manual_seed(0)
    yield
    torch.use_deterministic_algorithms(mode=False)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.__future__.set_swap_module_params_on_conversion(False)


NOT_YET = pytest.mark.xfail(reason="known, and to be repaired", strict=False)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"], marks=NOT_YET if case.get("known_miss") else ()) for case in MORE]
)
def test_case_is_judged_rightly(case):
    """What is expected is found, on its line and for its cause, and nothing else is."""
    for module in case.get("requires") or []:
        pytest.importorskip(module)
    report, _, error = run(case, case["cell"])

    assert (*missed_and_false(case, report), wrong_places(case, report), report.failures) == ([], [], [], ())
    assert type(error).__name__ in (case.get("raises") or "NoneType").split("|")
