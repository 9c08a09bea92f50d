"""Errors as data: one root, one subclass per stage, fields for place, found, expected and hint.

Leaves out   the compiler's own subclasses: see compiler/errors.py.
Invariants   str(error) is the text a person reads, without the class; the fields are what a machine reads. A code
             never changes its meaning: a new kind gets a new number, and a number is not used again.
"""

from __future__ import annotations

CODES = {
    "ArgumentError": "TC101",
    "SetupError": "TC102",
    "SpecError": "TC201",
    "SchemaError": "TC202",
    "UnsupportedError": "TC203",
    "UnsatisfiableError": "TC204",
    "ReportError": "TC205",
    "GrammarError": "TC301",
    "VocabError": "TC401",
    "BudgetError": "TC501",
    "BundleError": "TC601",
    "VersionError": "TC602",
    "SignatureError": "TC603",
    "StoreError": "TC604",
    "DecodeError": "TC701",
    "TextError": "TC702",
    "RequestError": "TC801",
    "ServingError": "TC802",
    "Late": "TC803",
    "SpeculateError": "TC901",
}
"""Class of an error → its code; docs/errors.md explains each. A class that is not listed has the code of its parent."""


class ToolcError(Exception):
    """The root of every error that toolc raises on purpose.

    Args:
        message: what is wrong, in one sentence without a final stop.
        place: where it is, e.g. ``weather.json#/tools/2/parameters``.
        found: what stands there.
        expected: what should stand there.
        hint: how to mend it.
    """

    code: str = ""
    """The code of its kind: see `CODES`."""

    def __init_subclass__(cls) -> None:
        cls.code = CODES.get(cls.__name__, cls.code)

    def __init__(
        self,
        message: str = "",
        *,
        place: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.found = found
        self.expected = expected
        self.hint = hint
        self.refused: tuple[tuple[str, ToolcError], ...] = ()
        """Of a spec: every tool that is refused, by name, with its own error."""

    def __str__(self) -> str:
        """What a person reads; the class is no part of it, since Python writes it before."""
        what = self._what()
        return f"at {self.place}\n  {what}" if self.place else what

    @property
    def titled(self) -> str:
        """The same with the class and its code before it, for what is printed alone."""
        where = f" at {self.place}" if self.place else ""
        return f"{type(self).__name__} [{self.code}]{where}\n  {self._what()}"

    def _what(self) -> str:
        what = self.message
        if self.found is not None:
            what += f"{'; ' if what else ''}found {self.found}"
        if self.expected is not None:
            what += f"{', ' if what else ''}expected {self.expected}"
        if self.hint:
            joint = "; " if what and not self.hint.startswith("\n") else ""  # an excerpt stands on lines of its own
            what += joint + self.hint
        return what

    def as_dict(self) -> dict[str, str | None]:
        """The same as plain data, for ``--json``."""
        return {
            "error": type(self).__name__,
            "code": self.code,
            "message": self.message,
            "place": self.place,
            "found": self.found,
            "expected": self.expected,
            "hint": self.hint,
        }


class ArgumentError(ToolcError, TypeError):
    """An argument of a type that a function does not take."""


class SetupError(ToolcError):
    """A package, a cluster or a file that a command needs, and that cannot be had on this machine."""


class BundleError(ToolcError):
    """A bundle or vocab file that cannot be trusted or does not fit."""


class VersionError(BundleError):
    """A bundle or vocab file that an older or a newer toolc has written."""


class SignatureError(BundleError):
    """A bundle that no allowed key has signed, or a signature or key that is none."""


class StoreError(BundleError):
    """A store that does not hold a bundle, cannot be reached, or may not be written."""


class DecodeError(ToolcError):
    """A token, row or tensor that the runtime cannot take."""


class TextError(DecodeError):
    """A text that is read back, and is none that the bundle allows."""


class RequestError(ToolcError):
    """The body of a request that is none, or asks for what cannot be done."""


class ServingError(ToolcError):
    """A server's settings that cannot be meant, or a constraint that cannot be had for a request."""
