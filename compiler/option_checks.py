"""Check which options a spec or a grammar can have: those that say something of tools need tools.

Leaves out   what values options take (options.py), what makes a key (key.py).
Invariants   whatever works something out of a spec or grammar and options asks here first: its key, its Lark text, its
             bundle. So what a store holds changes no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolc.runtime.expected import expect

from .errors import GrammarError, SpecError
from .options import Options

if TYPE_CHECKING:
    from .specs import Spec


def checked_options(options: Options | None) -> Options:
    """The options that a caller gives, or those by default.

    Raises:
        ArgumentError: they are something else.
    """
    if options is None:
        return Options()
    hints = {"dict": "write Options(**options)", "str": "write Options(protocol=…), or the option that is meant"}
    expect(options, Options, "options", "Options", hints)
    return options


OF_GRAMMARS = ("max_depth",)
"""Options that say nothing of anything else."""
OF_TOOLS = ("protocol", "strict", "closed", "response")
"""Options that say nothing of a grammar."""
_UNSAID = Options()


def check_fit(source: Spec | str, options: Options, name: str) -> None:
    """Refuse options that say nothing of this spec or Lark text.

    Args:
        source: what is compiled.
        options: how.
        name: how errors call a grammar; a spec has its own.

    Raises:
        GrammarError: there are options of tools for a grammar.
        SpecError: there are options of grammars, or two responses, or neither tools nor a response.
    """
    if isinstance(source, str):
        if given := [option for option in OF_TOOLS if getattr(options, option) is not getattr(_UNSAID, option)]:
            raise GrammarError(
                "a grammar has no tools, of which these options say something",
                place=name,
                found=", ".join(given),
                hint="leave them out, or give a tools list or an OpenAPI document",
            )
        return
    if given := [option for option in OF_GRAMMARS if getattr(options, option) is not None]:
        raise SpecError(
            "only a grammar has rules of which these options say something",
            place=f"{source.name}#",
            found=", ".join(given),
            hint="leave them out; soft_depth is for nested values",
        )
    if source.kind == "schema" and options.response is not None:
        raise SpecError(
            "a JSON Schema has no tools to which a response could be the alternative", place=f"{source.name}#"
        )
    if source.kind == "request" and options.response is not None:
        raise SpecError(
            "a request says itself what its response is", place=f"{source.name}#", hint="write response_format into it"
        )
    if source.schema is None and options.response is None and not source.tools and not source.hosted:
        raise SpecError("the spec has no tools", place=f"{source.name}#", expected="at least one tool in the list")
