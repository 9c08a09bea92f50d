"""The last part of docs/protocols.md, from the data of the tests; `python -m tests.protocols.table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from tests.cases.protocols import FAMILIES
from tests.cases.requests import EXAMPLE
from toolc.compiler.grammar.protocol import load_protocol, protocol_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
BEGIN, END = "<!-- made by python -m tests.protocols.table -->\n", "<!-- end -->\n"


def example(name: str) -> str:
    """Two calls as a family writes them, or one where a turn has only one."""
    calls = [("current_weather", {"place": "Basel", "days": 3}), ("list_stations", {})]
    family = FAMILIES[name]
    return family.write(calls if family.many else calls[:1])


def table() -> str:
    """One section of Markdown a family: what writes it, its delimiters as tokens and as text, an example."""
    out = []
    for name in protocol_names():
        protocol = load_protocol(name)
        about = protocol.about.split("\n")[0].partition(": ")[0]
        ends = " or ".join(f"`{token}`" for token in protocol.turn_ends) or "any end of turn"
        if name in FAMILIES:
            text = example(name)
            tokens = " ".join(f"`{token}`" for token in FAMILIES[name].tokens) or "none"
        else:
            text, tokens = EXAMPLE, "none"
        out += [
            f"### {name}",
            "",
            f"{about}. Tokens: {tokens}; all else is text. The turn ends with {ends}.",
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
