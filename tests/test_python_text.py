"""A cell as typed becomes Python text with the editor's line numbers."""

from __future__ import annotations

import pytest

from torchmagic.cells.python_text import python_text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("x = 1\ny = 2", "x = 1\ny = 2\n"),
        ("", ""),
        ("%%torchcheck", "#%%torchcheck\n"),
        ("%%torchcheck --strict\nx = 1\n", "#%%torchcheck --strict\nx = 1\n"),
        ("%%torchcheck\r\nx = 1\r\n", "#%%torchcheck\r\nx = 1\r\n"),
        (
            "%%torchcheck\n%matplotlib inline\nx = 1\n",
            "#%%torchcheck\nget_ipython().run_line_magic('matplotlib', 'inline')\nx = 1\n",
        ),
        (
            "%%torchcheck\nif x:\n    !ls {x}\ny = 2\n",
            "#%%torchcheck\nif x:\n    get_ipython().system('ls {x}')\ny = 2\n",
        ),
        ("files = !ls\n", "files = get_ipython().getoutput('ls')\n"),
        ("t = %time f()\n", "t = get_ipython().run_line_magic('time', 'f()')\n"),
        ("x?\ny = 1\n", "get_ipython().run_line_magic('pinfo', 'x')\ny = 1\n"),
        ("%%torchcheck?\n", "#%%torchcheck?\n"),
    ],
)
def test_ipython_syntax_becomes_calls(cell, text):
    """Each line of the cell stays the line that it is."""
    assert python_text(cell) == text


def test_a_magic_over_several_lines_keeps_the_numbers():
    """IPython joins continued lines; blank ones make up for it."""
    cell = "x = 1\n!ls \\\n  -l \\\n  -a\ny = 2\n%time \\\n  f()\nz = 3\n"

    assert python_text(cell) == (
        "x = 1\nget_ipython().system('ls    -l    -a')\n\n\ny = 2\n"
        "get_ipython().run_line_magic('time', '   f()')\n\nz = 3\n"
    )


@pytest.mark.parametrize("magic", ["time", "timeit -n 1", "prun", "capture out", "px", "debug"])
def test_a_cell_magic_with_a_python_body_becomes_a_comment(magic):
    """Its body is the cell's code."""
    assert python_text(f"%%torchcheck\n\n%%{magic}\n%pwd\nx = 1\n") == (
        f"#%%torchcheck\n\n#%%{magic}\nget_ipython().run_line_magic('pwd', '')\nx = 1\n"
    )


@pytest.mark.parametrize("magic", ["bash", "html", "writefile x.py", "javascript", "some_unknown_magic"])
def test_a_body_of_something_else_is_no_python(magic):
    """Its words are not Python, whatever they look like."""
    assert python_text(f"%%torchcheck\n%%{magic}\nx = 1\n") is None


def test_the_text_begins_where_the_code_counts_from():
    """A magic above the checked one runs the rest as a cell of its own, which counts its lines anew."""
    assert python_text("%%time\n%%torchcheck\nx = 1\n") == "#%%torchcheck\nx = 1\n"


def test_the_words_of_a_magic_in_a_string_are_a_string():
    """Only the head of a cell holds cell magics."""
    assert python_text('s = """\n%%bash\n!ls\n"""\n') == 's = """\n%%bash\n!ls\n"""\n'


def test_a_cell_that_arms_by_its_own_call_reads_as_typed():
    """A macro holds the call in place of the magic."""
    assert python_text("get_ipython().run_line_magic('torchcheck', '--cell --strict')\nx = 1\n") == (
        "#%%torchcheck --strict\nx = 1\n"
    )


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("\n\n%%torchcheck\nx = 1\n", "#%%torchcheck\nx = 1\n"),
        ("  %%torchcheck\n  x = 1\n", "#%%torchcheck\nx = 1\n"),
        (">>> %%torchcheck\n>>> x = 1\n", "#%%torchcheck\nx = 1\n"),
    ],
)
def test_what_ipython_strips_is_stripped(cell, text):
    """The code IPython compiles has none of it either."""
    assert python_text(cell) == text


@pytest.mark.parametrize("cell", ["x = (\n", "if x:\n        y\n    z\n", "x = '''\n"])
def test_a_broken_cell_stays_as_it_is(cell):
    """It does not run, so nobody reads it as Python."""
    assert python_text(cell) == cell
