"""A report comes when its own cell ends, whatever other cells run meanwhile, and however IPython is set."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line


@pytest.mark.parametrize("inner", ["''", "'y = 1'", "'y = 1', silent=True", "'%time 1'"])
def test_a_cell_within_the_cell_does_not_end_it(run, inner):
    """The report comes when the outer cell ends, with what it did last."""
    ran = run(f"%%torchcheck\nget_ipython().run_cell({inner})\nprint('last')\n")

    assert re.search(r"last\ntorchcheck: nothing wrong[^\n]*\n$", ran.out)
    assert ran.reports == 1


def test_a_checked_cell_within_a_checked_cell_has_its_own_report(run):
    """Each report comes when its own cell ends."""
    ran = run("%%torchcheck\nget_ipython().run_cell('%%torchcheck\\nprint(1)')\nprint(2)")

    assert re.fullmatch(r"1\ntorchcheck: [^\n]*\n2\n(Out.*\n)?torchcheck: [^\n]*\n", ran.out)


def test_arming_after_a_cell_within_the_cell_arms_the_outer_one(run):
    """IPython no longer says then which cell is running."""
    ran = run("get_ipython().run_cell('y = 1')\nget_ipython().run_line_magic('torchcheck', '--cell')\nprint('last')")

    assert re.search(r"last\ntorchcheck: [^\n]*\n$", ran.out)


def test_a_silent_cell_has_no_report(run):
    """And leaves nothing behind for the next cell."""
    assert run("%%torchcheck\nx = 1", silent=True).out == ""
    assert run("x = 1").out == ""


def test_a_cell_without_history_is_reported_on(run):
    """As front ends run cells that should not be counted."""
    assert run("%%torchcheck\nx = 1", store_history=False).reports == 1


def test_cells_of_another_thread_are_another_story(shell, capsys):
    """A kernel runs subshells' cells side by side."""
    inside, go_on = threading.Event(), threading.Event()
    shell.user_ns.update(inside=inside, go_on=go_on)
    thread = threading.Thread(target=shell.run_cell, args=("%%torchcheck\ninside.set(); go_on.wait(10)\n",))
    thread.start()
    inside.wait(10)
    shell.events.trigger("pre_run_cell", "info of a cell here")
    before = capsys.readouterr().out
    go_on.set()
    thread.join()

    assert before == ""
    assert capsys.readouterr().out.count("torchcheck: ") == 1


def test_a_child_that_gets_back_to_the_shell_does_not_report():
    """Two processes come to the end of the cell, and one of them reports."""
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from traitlets.config import Config\n"
        "shell = InteractiveShell.instance(config=Config({'HistoryManager': {'hist_file': ':memory:'}}))\n"
        "shell.run_line_magic('load_ext', 'torchmagic')\n"
        "shell.run_cell('%%torchcheck\\nimport os\\nchild = os.fork()\\nif child: os.waitpid(child, 0)')\n"
        "print('the end')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert re.findall("^(torchcheck|the end)", ran.stdout, re.MULTILINE) == ["the end", "torchcheck", "the end"]


@pytest.mark.parametrize("interactivity", ["all", "last_expr_or_assign"])
def test_other_ways_to_show_values_do_not_show_ours(shell, run, interactivity):
    """The call is no value."""
    shell.ast_node_interactivity = interactivity

    assert re.fullmatch(
        r"Out\[1\]: 5\ntorchcheck: [^\n]*\n", run("%%torchcheck\nx = 5" + "\nx" * (interactivity == "all")).out
    )


@pytest.mark.parametrize(
    "cell", ["%%torchcheck", "%%torchcheck --level note", "%%torchcheck\nx = 5", "%%torchcheck -h"]
)
def test_calls_without_parentheses_do_not_change_the_call(run, cell):
    """With `%autocall 2` IPython puts parentheses behind whatever can be called."""
    run("%autocall 2")
    ran = run(cell)

    assert ran.result.success
    assert ran.err == ""
    assert ran.reports == (not cell.endswith("-h"))


@pytest.mark.parametrize("body", ["40 + 2", "from __future__ import annotations\n40 + 2", "%time 40 + 2"])
def test_a_shell_without_await_works(shell, run, body):
    """`autoawait` is off where a notebook runs in an event loop of its own."""
    shell.autoawait = False
    ran = run("%%torchcheck\n" + body)

    assert ran.result.result == 42
    assert ran.reports == 1


@pytest.mark.parametrize("loss", ["get_ipython = None", "%reset -f", "del get_ipython"])
def test_losing_names_is_not_in_the_way(run, loss):
    """No name of the namespace is needed when the cell ends."""
    assert run(f"%%torchcheck\n{loss}").reports == 1
