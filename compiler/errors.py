"""The compiler's errors: one subclass per stage, and three kinds of schema trouble kept apart.

Leaves out   the root class and the runtime's errors: see runtime/errors.py.
"""

from __future__ import annotations

from toolc.runtime.errors import (
    ArgumentError,
    BundleError,
    DecodeError,
    RequestError,
    SetupError,
    ToolcError,
)

__all__ = [
    "ArgumentError",
    "BudgetError",
    "BundleError",
    "DecodeError",
    "GrammarError",
    "LeftRecursionError",
    "ReportError",
    "RequestError",
    "SchemaError",
    "SetupError",
    "SpecError",
    "ToolcError",
    "UnsatisfiableError",
    "UnsupportedError",
    "VocabError",
]


class SpecError(ToolcError):
    """A spec document that is not what it claims to be (bad JSON, two tools with one name, ...)."""


class SchemaError(ToolcError):
    """A malformed schema: a keyword has a value of the wrong kind, a ``$ref`` dangles."""


class UnsupportedError(ToolcError):
    """A well-formed schema or grammar outside what toolc compiles exactly."""


class UnsatisfiableError(ToolcError):
    """A well-formed schema or grammar that no text satisfies."""


class GrammarError(ToolcError):
    """Lark text that is malformed, or a rule outside the supported class."""


class LeftRecursionError(GrammarError):
    """Left recursion that cannot be rewritten as a repeat."""


class VocabError(ToolcError):
    """A tokenizer that cannot be read or does not round-trip."""


class BudgetError(ToolcError):
    """A limit on states, rows, seconds or bytes was reached."""


class RefusedTools(Exception):
    """Some tools of a spec cannot be compiled, and others may: the caller leaves these out, or raises the first error.

    Args:
        errors: number of a tool in the spec → why.
    """

    def __init__(self, errors: dict[int, ToolcError]) -> None:
        super().__init__(errors)
        self.errors = errors


class ReportError(ToolcError):
    """A compile whose report has warnings, which were asked to be errors."""
