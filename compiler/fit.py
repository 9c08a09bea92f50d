"""Which options a spec or a grammar can have: those that say something of tools need tools.

Leaves out   what values options take (options.py), what makes a key (key.py).
Invariants   whatever works something out of a spec or grammar and options asks here first: its key, its Lark text, its
             bundle. So what a store holds changes no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import GrammarError, SpecError
from .options import Options

if TYPE_CHECKING:
    from .specs import Spec

OF_TOOLS = ("protocol", "strict", "response")
"""Options that say nothing of a grammar."""


def check_fit(source: Spec | str, options: Options, name: str) -> None:
    """Refuse options that say nothing of this spec or Lark text.

    Args:
        source: what is compiled.
        options: how.
        name: how errors call a grammar; a spec has its own.

    Raises:
        GrammarError: there are options of tools for a grammar.
        SpecError: there is a protocol or a response for a JSON Schema.
    """
    if isinstance(source, str):
        if given := [option for option in OF_TOOLS if getattr(options, option) is not None]:
            raise GrammarError(
                "a grammar has no tools, of which these options say something",
                place=name,
                found=", ".join(given),
                hint="leave them out, or give a tools list or an OpenAPI document",
            )
        return
    if source.kind == "schema" and options.response is not None:
        raise SpecError(
            "a JSON Schema has no tools to which a response could be the alternative", place=f"{source.name}#"
        )
    if source.kind == "schema" and options.protocol is not None:
        raise SpecError(
            "a JSON Schema has no tools, so no protocol can write calls of them",
            place=f"{source.name}#",
            hint="leave the protocol out, or give a tools list or an OpenAPI document",
        )
