"""The page docs/format.md against the registry of tables; ``python -m tests.golden`` writes its table anew."""

from __future__ import annotations

from pathlib import Path

from toolc.runtime.format.bundle import VERSION
from toolc.runtime.format.tables import NEVER, TABLES, Table
from toolc.runtime.format.vocab import VERSION as VOCAB_VERSION

PAGE = Path(__file__).parents[2] / "docs" / "format.md"
BEGIN, END = "<!-- tables: python -m tests.golden -->\n", "<!-- end of tables -->\n"


def _values(table: Table) -> str:
    shown = []
    for low, high in table.values:
        if isinstance(high, str):
            shown.append(high if low == 0 else f"{high} or −1" if low == -1 else f"{high}, from {low}")
        else:
            shown.append(
                "bound"
                if high == NEVER + 1
                else ("count or −1" if low == -1 else "count")
                if high >= 1 << 30
                else f"{low} to {high - 1}"
            )
    return "; ".join(shown) or "see below"


def page() -> str:
    """The table of the page."""
    lines = ["| table | counts | dtype, shape | numbers are | meaning |", "|---|---|---|---|---|"]
    for name, table in TABLES.items():
        shape = ", ".join(["·", *map(str, table.width)])
        values = "offsets" if table.counts.endswith("+ 1") else "bits" if name == "dense" else _values(table)
        lines.append(f"| `{name}` | {table.counts} | {table.dtype} [{shape}] | {values} | {table.meaning} |")
    return "\n".join(lines) + "\n"


def rebuild() -> Path:
    """Write the table of the page anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + page() + END + rest.split(END)[1], encoding="utf-8")
    return PAGE


def test_the_page_has_the_tables_of_the_registry() -> None:
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0] == page(), "run `make golden`"


def test_the_page_names_the_versions() -> None:
    assert f"bundles {VERSION}, vocabularies {VOCAB_VERSION}" in PAGE.read_text(encoding="utf-8")
