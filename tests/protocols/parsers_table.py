"""The table of engines' parsers in docs/protocols.md: `python -m tests.protocols.parsers_table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from toolc.runtime.serving.parser_table import TOOL_PARSERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
BEGIN, END = "<!-- made by python -m tests.protocols.parsers_table -->", "<!-- end of the table of parsers -->"
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


def _cell(text: str) -> str:
    """A text in a cell: a bar would end it, and a tag would not be shown."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def page() -> str:
    """The rows by protocol, then what has none."""
    lines = ["| engine | `--tool-call-parser` | protocol | does not read |", "|---|---|---|---|"]
    for engine, parsers in TOOL_PARSERS.items():
        groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for name, parser in parsers.items():
            if parser.protocols:
                groups.setdefault((parser.protocols, parser.misses), []).append(name)
        for (protocols, misses), names in groups.items():
            lines.append(f"| {_ENGINES[engine]} | {', '.join(names)} | {', '.join(protocols)} | {_cell(misses)} |")
    for engine, parsers in TOOL_PARSERS.items():
        others = ", ".join(name for name, parser in parsers.items() if not parser.protocols)
        lines.append(f"| {_ENGINES[engine]} | {others} | none | |")
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{page()}\n\n{END}{after}", encoding="utf-8")
