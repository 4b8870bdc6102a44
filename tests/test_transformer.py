"""The first line of a checked cell becomes a call, and the call is shown as what was typed."""

from __future__ import annotations

import pytest

from torchmagic.cells.transformer import arm_cell, line_as_typed

CALL = "get_ipython().run_line_magic('torchcheck', '--cell')"


def armed(cell):
    return "".join(arm_cell(cell.splitlines(keepends=True)))


def test_the_first_line_becomes_a_call():
    """The body stays as it is, line for line."""
    assert armed("%%torchcheck\nx = 1\nx\n") == CALL + "\nx = 1\nx\n"


def test_options_go_along():
    """What stands behind the magic is handed to it."""
    assert armed("%%torchcheck  --strict -o r \nx\n") == (
        "get_ipython().run_line_magic('torchcheck', '--cell --strict -o r')\nx\n"
    )


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "x = 1\n",
        "x = 1\n%%torchcheck\n",
        "# a comment\n%%torchcheck\n",
        "%torchcheck\n",
        "%%torchcheck?\n",
        "%%torchchecks\nx\n",
        "%%torch\nx\n",
        "%%time\n%%torchcheck\n",
        "text = '''\n%%torchcheck\n'''\n",
    ],
)
def test_other_cells_are_left_alone(cell):
    """Only a cell whose first line is the magic is a checked cell."""
    assert armed(cell) == cell


@pytest.mark.parametrize("option", ["-h", "--help", "--strict -h"])
def test_a_question_for_help_is_all_that_runs(option):
    """The body is not run, and the line count stays."""
    assert armed(f"%%torchcheck {option}\nx\n") == "get_ipython().run_line_magic('torchcheck', '--help')\n\n"


def test_a_cell_magic_below_keeps_its_body():
    """The call comes first, and the other magic does with its body what it does."""
    assert armed("%%torchcheck\n\n%%time -x\ny = 1\n") == (
        CALL + "\n\nget_ipython().run_cell_magic('time', '-x', 'y = 1\\n')\n"
    )


def test_both_magics_are_armed_above_one_cell():
    """In the order in which they stand, whatever stands below them."""
    memory = CALL.replace("torchcheck", "gpumem")
    future = "from __future__ import annotations"

    assert armed("%%torchcheck\n%%gpumem --top 3\nx\n") == f"{CALL}\n{memory[:-2]} --top 3')\nx\n"
    assert armed("%%gpumem\n%%torchcheck\n%%time\nx\n") == (
        f"{memory}\n{CALL}\nget_ipython().run_cell_magic('time', '', 'x\\n')\n"
    )
    assert armed(f"%%torchcheck\n%%gpumem\n{future}\n") == f"#%%torchcheck\n#%%gpumem\n{future}; {CALL}; {memory}\n"
    assert armed("%%torchcheck\n%%gpumem -h\nx\n") == ("\nget_ipython().run_line_magic('gpumem', '--help')\n\n")
    assert line_as_typed(f"{future}; {CALL}; {memory}\n") == f"{future}\n"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("from __future__ import annotations\nx\n", f"from __future__ import annotations; {CALL}\nx\n"),
        ("from __future__ import annotations  # why\n", f"from __future__ import annotations; {CALL}  # why\n"),
        ("from __future__ import annotations; x = 1\n", f"from __future__ import annotations; {CALL}; x = 1\n"),
        ('"""Doc."""\nfrom __future__ import division\n', f'"""Doc."""\nfrom __future__ import division; {CALL}\n'),
        ("from __future__ import (\n    division,\n)\n", f"from __future__ import (\n    division,\n); {CALL}\n"),
        ("from __future__ import \\\n    division\n", f"from __future__ import \\\n    division; {CALL}\n"),
        (
            "from __future__ import division as d, annotations\n# a\n\nfrom __future__ import generators\n!ls\n",
            "from __future__ import division as d, annotations\n# a\n\n"
            f"from __future__ import generators; {CALL}\n!ls\n",
        ),
    ],
)
def test_the_call_stands_behind_future_imports(typed, expected):
    """Python wants them first; the magic's own line becomes a comment."""
    assert armed("%%torchcheck\n" + typed) == "#%%torchcheck\n" + expected


@pytest.mark.parametrize(
    "body",
    [
        "x = 1\nfrom __future__ import annotations\n",
        "from __future__ import nope\n",
        "'one'\n'two'\nfrom __future__ import annotations\n",
        "!ls\nfrom __future__ import annotations\n",
        "text = '''from __future__\nimport annotations\n",
    ],
)
def test_what_is_no_future_import_stays_below_the_call(body):
    """An import that Python refuses is left for Python to refuse."""
    assert armed("%%torchcheck\n" + body) == CALL + "\n" + body


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        (CALL + "\n", "#%%torchcheck\n"),
        ("get_ipython().run_line_magic('torchcheck', '--cell --strict')\n", "#%%torchcheck --strict\n"),
        ("get_ipython().run_line_magic('torchcheck', \"--cell -o 'r'\")\n", "#%%torchcheck -o 'r'\n"),
        (f"from __future__ import division; {CALL}  # why\n", "from __future__ import division  # why\n"),
        (f"from __future__ import division; {CALL}; f('x')\n", "from __future__ import division; f('x')\n"),
        (
            "get_ipython().run_line_magic('torchcheck', 'list')\n",
            "get_ipython().run_line_magic('torchcheck', 'list')\n",
        ),
        ("x = 1\n", "x = 1\n"),
    ],
)
def test_a_line_is_shown_as_typed(line, typed):
    """The magic is shown as a comment, which tools that parse the source can read."""
    assert line_as_typed(line) == typed


def test_the_input_is_not_changed():
    """ipykernel transforms a cell twice."""
    lines = ["%%torchcheck\n", "from __future__ import annotations\n"]
    arm_cell(lines)

    assert lines == ["%%torchcheck\n", "from __future__ import annotations\n"]
