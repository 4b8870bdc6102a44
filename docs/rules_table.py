"""Write the table of rules into README.md, from the rules' own lessons."""

from __future__ import annotations

import re
from pathlib import Path

from torchmagic.checking import rules

README = Path(__file__).parent.parent / "README.md"
PLACE = re.compile(r"(?<=<!-- rules -->\n).*(?=<!-- /rules -->)", re.DOTALL)


def rules_table() -> str:
    """Return the table: a row for each rule, with the first sentence of its lesson."""
    rows = [f"| `{name}` | {rule.lesson().summary} |" for name, rule in rules().items()]
    return "\n".join(["| rule | what it finds |", "| --- | --- |", *rows, ""])


def table_in(readme: str) -> str:
    """Return the table that stands in the text of README.md."""
    found = PLACE.search(readme)
    return found.group() if found else ""


def main() -> None:
    """Put the table in its place."""
    README.write_text(PLACE.sub(lambda _: rules_table(), README.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
