"""The notebook cells of `cases.jsonl`, most of them after reports about real projects.

The fields of a case: `setup_cells` run first; `cell` is checked; `expect` lists what is to be found (`level` "flag": a
warning or error; anything else: at most a note); `must_not_flag` lists names that nothing may be said about; `raises`
is the exception the cell ends with; `post_verify` must be true after the look.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from tests.looking import look_around

RULES = {
    "device": {"off-device", "discarded-transfer"},
    "graph": {"grad-history"},
    "nonfinite": {"non-finite"},
    "alias": {"shared-memory"},
    "uncalled": {"uncalled-method"},
}
CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text().splitlines()]
MAGIC = "#%%torchcheck\n"


def is_same_name(one: str, two: str) -> bool:
    """Tell whether two paths are equal, or one leads to the other."""
    one, two = one.replace('"', "'"), two.replace('"', "'")
    return one == two or one.startswith((two + ".", two + "[")) or two.startswith((one + ".", one + "["))


def is_match(finding, expected) -> bool:
    """Tell whether a finding is the expected one."""
    if finding.rule not in RULES[expected["check"]]:
        return False
    if expected.get("statement") and finding.line == expected["line"] + 1:
        return True
    names = [expected["name"], *expected.get("alt_names", [])]
    if expected["check"] == "alias" and expected.get("other"):
        names.append(expected["other"])
    return any(is_same_name(finding.subject, name) for name in names)


@pytest.fixture(params=CASES, ids=lambda case: case["id"])
def case(request):
    """Each case in turn; what it changes in torch is put back."""
    import torch

    for module in request.param.get("requires", []):
        pytest.importorskip(module)
    torch.manual_seed(0)
    yield request.param
    torch.use_deterministic_algorithms(mode=False)
    torch.__future__.set_swap_module_params_on_conversion(False)


def run(case, cell):
    """Run the case with this cell and return the report, the namespace and the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return look_around(*case["setup_cells"], MAGIC + cell)


def missed_and_false(case, report):
    """Return the names that should have been flagged and were not, and what was flagged though it should not be."""
    wanted = [expected for expected in case["expect"] if expected["level"] == "flag"]
    missed = [e["name"] for e in wanted if not any(is_match(f, e) for f in report.findings)]
    false = [
        f"{f.rule} {f.subject}"
        for f in report.findings
        if f.level != "note"  # what explains an error is shown whatever its level
        if not any(is_match(f, e) for e in wanted) or f.subject in (case.get("must_not_flag") or [])
    ]
    return missed, false


def wrong_places(case, report):
    """Return what was flagged on a wrong line or for a wrong cause, where these can be told."""
    wrong = []
    for expected in case["expect"]:
        hits = [f for f in report.findings if expected["level"] == "flag" and is_match(f, expected)]
        lines = {line + 1 for line in [expected.get("line"), *expected.get("alt_lines", [])] if line}
        causes = {cause for cause in [expected.get("cause"), *expected.get("alt_causes", [])] if cause}
        if hits and lines and not any(f.line in lines for f in hits):
            wrong.append((expected["name"], sorted(lines), [f.line for f in hits]))
        if hits and causes and expected["check"] == "nonfinite" and not any(f.cause in causes for f in hits):
            wrong.append((expected["name"], sorted(causes), [f.cause for f in hits]))
    return wrong


def test_case(case):
    """What is expected is found, and nothing else is."""
    report, namespace, error = run(case, case["cell"])

    assert (*missed_and_false(case, report), report.failures) == ([], [], ())
    assert type(error).__name__ in (case.get("raises") or "NoneType").split("|")
    assert "post_verify" not in case or case["post_verify"] is None or eval(case["post_verify"], namespace)


def test_line_and_cause_of_case(case):
    """Where the line and the cause can be told, they are right."""
    report, _, _ = run(case, case["cell"])

    assert wrong_places(case, report) == []


def test_fix_of_case_makes_it_quiet(case):
    """With every fix put in, the cell is quiet about what was fixed."""
    report, _, _ = run(case, case["cell"])
    fixed = [f for f in report.findings if f.fix is not None and f.line is not None]
    if not fixed:
        pytest.skip("no fix is offered")
    lines = (MAGIC + case["cell"]).split("\n")
    for finding in fixed:
        indent = lines[finding.line - 1][: -len(lines[finding.line - 1].lstrip()) or None]
        lines[finding.line - 1] = "\n".join(indent + line for line in finding.fix.replacement.split("\n"))
    again, _, error = run(case, "\n".join(lines).removeprefix(MAGIC))

    left = {(f.rule, f.subject) for f in again.findings} & {(f.rule, f.subject) for f in fixed}
    assert (left, error if case.get("raises") is None else None) == (set(), None)
