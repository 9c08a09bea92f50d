"""The last part of docs/protocols.md, from the data of the tests; `python -m tests.protocols.table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from tests.cases.protocols import FAMILIES
from toolc.compiler.grammar.protocol import load_protocol

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
BEGIN, END = "<!-- made by python -m tests.protocols.table -->\n", "<!-- end -->\n"


def table() -> str:
    """One section of Markdown a family: what writes it, its tokens, two calls."""
    out = []
    for name, family in sorted(FAMILIES.items()):
        calls = [("current_weather", {"place": "Basel"}), ("list_stations", {})]
        text = family.write(calls if family.many else calls[:1])
        about = load_protocol(name).about.split("\n")[0].partition(": ")[0]
        tokens = " ".join(f"`{token}`" for token in family.tokens) or "none"
        ends = " or ".join(f"`{token}`" for token in family.ends)
        out += [
            f"### {name}",
            "",
            f"{about}. Tokens: {tokens}; the turn ends with {ends}.",
            "",
            "~~~text",
            text,
            "~~~",
            "",
        ]
    return "\n".join(out)


def page() -> str:
    """The page with a new table."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
