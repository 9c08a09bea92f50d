"""Choose the protocol of a server by its parser of calls.

Leaves out   the table of parsers: see ../parsers.py; the protocols: see grammars/*.lark.
Invariants   each row is held against the engine's own parser, which reads the calls that the protocol writes
             (tests/engines/test_parsers.py).
"""

from __future__ import annotations

from collections.abc import Container

from .parser_table import TOOL_PARSERS

VLLM = {name: parser.protocols[0] for name, parser in TOOL_PARSERS["vllm"].items() if parser.protocols}
"""Name of --tool-call-parser → protocol."""


def protocol_of(parser: str | None, tokens: Container[str]) -> str | None:
    """The protocol of a parser of vLLM; None if none is known.

    Args:
        parser: its name.
        tokens: of the tokenizer: Mistral's models write calls in another way where it has the token [ARGS].
    """
    if parser == "mistral":
        return "mistral_v11" if "[ARGS]" in tokens else "mistral"
    return VLLM.get(parser or "")
