"""Write the table of parsers in docs/serving.md: `python -m tests.serving.table`."""

from __future__ import annotations

import re
from pathlib import Path

from toolc.runtime.serving.parsers import VLLM

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def table() -> str:
    rows = [f"| `{parser}` | {protocol} |" for parser, protocol in sorted(VLLM.items())]
    rows[rows.index("| `mistral` | mistral |")] = (
        "| `mistral` | mistral; mistral_v11 where the tokenizer has `[ARGS]` |"
    )
    return "\n".join(["| `--tool-call-parser` | protocol |", "|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """The page with the table in it."""
    head, mark, rest = text.partition("<!-- made by python -m tests.serving.table -->\n\n")
    assert mark
    return head + mark + re.sub(r"\A.*?(?=<!-- end -->)", lambda _: table(), rest, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
