"""Cells with transforms of `torch.func` run as without a watch."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look_around

TRANSFORMS = {
    "hessian": ("torch.func.hessian(lambda x: (x ** 3).sum().exp())(torch.ones(3) / 3)", [3, 3]),
    "jvp": ("torch.func.jvp(torch.sin, (torch.ones(3),), (torch.ones(3),))[1]", [3]),
    "vjp": ("torch.func.vjp(torch.sin, torch.ones(3))[1](torch.ones(3))[0]", [3]),
    "jacrev": ("torch.func.jacrev(torch.sin)(torch.ones(3))", [3, 3]),
    "jacfwd": ("torch.func.jacfwd(lambda x: x[1:] * 2)(torch.ones(3))", [2, 3]),
    "vmap in place": ("torch.vmap(lambda x: x.clone().add_(1).mul_(2))(torch.ones(2, 3))", [2, 3]),
    "zeros without memory": ("torch._efficientzerotensor((1,)) + torch.ones(1)", [1]),
}


@pytest.mark.parametrize(("expression", "shape"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_the_result_is_that_of_the_bare_cell(expression, shape):
    """Same values; and nothing to report."""
    cell = f"out = {expression}"
    _, bare, _ = look_around(COMMON, cell)
    report, followed, error = look_around(COMMON, cell, trace=True)

    assert error is None
    assert list(followed["out"].shape) == shape
    assert followed["out"].equal(bare["out"])
    assert report.findings == ()
    assert report.skipped == ()
