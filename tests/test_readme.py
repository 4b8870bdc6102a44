"""README.md says what the code does."""

from __future__ import annotations

import re

from rules_table import README, rules_table, table_in

from torchmagic.magics.memory_options import help_text as gpumem_help
from torchmagic.magics.options import help_text

TEXT = README.read_text("utf-8")


def test_the_table_of_rules_is_that_of_the_classes() -> None:
    """The table has a row for each rule, in the words of its lesson; `python docs/rules_table.py` writes it."""
    assert table_in(TEXT) == rules_table()


def test_the_table_of_options_names_every_option() -> None:
    """The rows of the table are the options that the magic's own help lists, but for `--help` itself."""
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `-")]

    assert re.findall(r"--\w+", "".join(rows)) == [
        option for option in re.findall(r"(?<=[ ,])--\w+", help_text()) if option != "--help"
    ]


def test_the_table_of_memory_names_every_option() -> None:
    """Each option of `%gpumem` stands in a row of its table."""
    rows = "".join(line for line in TEXT.splitlines() if re.match(r"\| `%%?gpumem", line))
    options = {*re.findall(r"--\w+", gpumem_help())} - {"--help", "--output"}

    assert {*re.findall(r"--\w+", rows)} == options
    assert "`-o NAME`" in rows


def test_the_pictures_are_there() -> None:
    """Every file that the text shows or links to is part of the project."""
    files = re.findall(r'(?:srcset|src)="([^"]+)"', TEXT) + re.findall(r"\]\(([^)#:]+)\)", TEXT)

    assert files == [
        *("docs/report-dark.webp", "docs/report.webp", "docs/gpumem-dark.webp", "docs/gpumem.webp"),
        "torchmagic/checks",
    ]
    assert [file for file in files if not (README.parent / file).exists()] == []
