"""`%%torchcheck --trace` in a shell as a person has one."""

from __future__ import annotations

from pathlib import Path

from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

SETUP = "import torch"


def test_a_cell_is_followed(run, shell):
    """The report names the operation, and says how much was followed."""
    run(SETUP)
    ran = run("%%torchcheck --trace -o report\np = torch.zeros(2)\nloss = (p * p.log()).sum()")

    report = shell.user_ns["report"]
    assert [(f.subject, f.line, f.evidence["operation"]) for f in report.findings] == [("loss", 3, "torch.log")]
    assert "born in line 3 in `p.log()`" in ran.out.replace("\n         ", " ")
    assert report.followed.operations == 4
    assert "4 operations followed" in ran.out.replace("\n", " ")
    assert _get_current_dispatch_mode_stack() == []


def test_functions_of_other_cells_are_told_by_their_number(run, shell):
    """The place is given as people know it."""
    run(SETUP)
    run("def entropy(p):\n    return -(p * p.log()).sum()")
    run("%%torchcheck -t -o report\nh = entropy(torch.tensor([1.0, 0.0]))")

    (finding,) = shell.user_ns["report"].findings
    assert finding.details[0] == "It stands in cell In[2], line 2 in `entropy`, called from line 2."


def test_an_error_looks_as_in_a_bare_cell(run):
    """No frame of ours stands in the user's traceback."""
    run(SETUP)
    bare = run("torch.ones(3) @ torch.ones(4)")
    ran = run("%%torchcheck --trace\ntorch.ones(3) @ torch.ones(4)")

    assert type(ran.result.error_in_exec) is RuntimeError
    assert "tracing" not in ran.out
    assert ran.out.split("RuntimeError: ")[1].splitlines()[0] == bare.out.split("RuntimeError: ")[1].splitlines()[0]
    tb, files = ran.result.error_in_exec.__traceback__, []
    while tb is not None:
        files.append(tb.tb_frame.f_code.co_filename)
        tb = tb.tb_next
    assert [Path(file).name for file in files[:1]] == ["interactiveshell.py"]
    assert len(files) == 2
    assert _get_current_dispatch_mode_stack() == []


def test_a_custom_exception_handler_is_called_as_before(run, shell):
    """A handler that the user set gets its exceptions, and stays."""
    run(SETUP)
    seen = []
    shell.set_custom_exc((ZeroDivisionError,), lambda shell, etype, value, tb, tb_offset=None: seen.append(etype))
    run("%%torchcheck --trace\n1 / 0")
    run("1 / 0")

    assert seen == [ZeroDivisionError, ZeroDivisionError]


def test_after_every_cell(run, shell):
    """`%torchcheck on --trace` follows each cell, and `off` ends it."""
    run(SETUP)
    run("%torchcheck on --trace")
    followed = run("u = torch.zeros(3)\nv = u / u")
    run("%torchcheck off")
    bare = run("w = u / u")

    assert "born in line 2 in `u / u`" in followed.out.replace("\n         ", " ")
    assert bare.reports == 0
    assert _get_current_dispatch_mode_stack() == []


def test_off_in_a_followed_cell(run):
    """The cell in which it is turned off leaves no mode behind."""
    run(SETUP)
    run("%torchcheck on --trace")
    ran = run("x = torch.zeros(1).log()\n%torchcheck off")

    assert ran.reports == 0
    assert _get_current_dispatch_mode_stack() == []


def test_a_cell_that_imports_torch_itself(run, shell):
    """The first cell of a notebook can be followed."""
    run("%%torchcheck --trace -o report\nimport torch\ny = torch.zeros(2) / 0")

    assert [f.line for f in shell.user_ns["report"].findings] == [3]


def test_an_interrupt(run):
    """It ends the cell as it would, and the mode comes off."""
    run(SETUP)
    ran = run("%%torchcheck --trace\nx = torch.zeros(1)\nraise KeyboardInterrupt")

    assert type(ran.result.error_in_exec) is KeyboardInterrupt
    assert ran.reports == 1
    assert _get_current_dispatch_mode_stack() == []


def test_top_level_await(run, shell):
    """What stands behind an `await` is followed too."""
    run(SETUP)
    run("%%torchcheck --trace -o report\nimport asyncio\nawait asyncio.sleep(0)\nq = torch.tensor([-1.0]).sqrt()")

    assert [(f.subject, f.line) for f in shell.user_ns["report"].findings] == [("q", 4)]


def test_a_cell_that_does_not_compile(run):
    """Nothing runs, so nothing is followed, and nothing is left."""
    run(SETUP)
    run("%%torchcheck --trace\nx = = 1")

    assert _get_current_dispatch_mode_stack() == []


def test_without_a_cell_there_is_nothing_to_follow(run):
    """One line says where `--trace` belongs."""
    ran = run("%torchcheck --trace")

    assert ran.err == (
        "UsageError: --trace follows a cell while it runs: %%torchcheck --trace above it, or %torchcheck on --trace\n"
    )
