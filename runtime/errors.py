"""Errors as data: one root, one subclass per stage, fields for place, found, expected and hint.

Leaves out   the compiler's own subclasses: see compiler/errors.py.
Invariants   str(error) is the text a person reads, without the class; the fields are what a machine reads.
"""

from __future__ import annotations


class ToolcError(Exception):
    """The root of every error that toolc raises on purpose.

    Args:
        message: what is wrong, in one sentence without a final stop.
        place: where it is, e.g. ``weather.json#/tools/2/parameters``.
        found: what stands there.
        expected: what should stand there.
        hint: how to mend it.
    """

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
        """The same with the class before it, for what is printed alone."""
        return (
            f"{type(self).__name__} at {self.place}\n  {self._what()}"
            if self.place
            else (f"{type(self).__name__}\n  {self._what()}")
        )

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
            "message": self.message,
            "place": self.place,
            "found": self.found,
            "expected": self.expected,
            "hint": self.hint,
        }


class ArgumentError(ToolcError, TypeError):
    """An argument of a type that a function does not take."""


class BundleError(ToolcError):
    """A bundle or vocab file that cannot be trusted or does not fit."""


class StoreError(BundleError):
    """A store that does not hold a bundle, cannot be reached, or may not be written."""


class DecodeError(ToolcError):
    """A token, row or tensor that the runtime cannot take."""


class RequestError(ToolcError):
    """The body of a request that is none, or asks for what cannot be done."""


class ServingError(ToolcError):
    """A server's settings that cannot be meant, or a constraint that cannot be had for a request."""
