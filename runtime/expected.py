"""Check what callers give: the types of arguments, and names that are nearly those that exist.

Invariants   a message says what was given, what belongs there, and, where that is known, how one becomes the other.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from typing import Any

from .errors import ArgumentError

_NO_HINTS: Mapping[str, str] = {}
_PATHS = {
    "Bundle": "a Bundle is open: write bundle.write(path), or use it as it is",
    "Compiled": "write compiled.write(path), or use compiled.bundle",
    "Vocab": "a Vocab is open: use it as it is",
    "NoneType": "name the file",
}


def expect(
    value: Any, kinds: type | tuple[type, ...], place: str, expected: str, hints: Mapping[str, str] = _NO_HINTS
) -> None:
    """Refuse an argument of another type.

    Args:
        place: the function and the argument, as ``Matcher(bundle)``.
        expected: what belongs there.
        hints: how to mend it, by the name of the class that was given.

    Raises:
        ArgumentError: it is none of these types.
    """
    if not isinstance(value, kinds):
        raise ArgumentError(
            place=place, found=named_kind(value), expected=expected, hint=hints.get(type(value).__name__)
        )


def expect_word(value: Any, words: Collection[str | None], place: str) -> None:
    """Refuse an argument that is none of some words.

    Raises:
        ArgumentError: it is another, or no text.
    """
    if not isinstance(value, (str, type(None))) or value not in words:
        known = [word for word in words if word is not None]
        raise ArgumentError(
            place=place, found=named_kind(value), expected=" or ".join(known), hint=did_you_mean(value, known)
        )


def expect_path(value: Any, place: str, expected: str = "a path", *others: type) -> None:
    """The same for a path, or what else may stand there."""
    expect(value, (str, os.PathLike, *others), place, expected, _PATHS)


def named_kind(value: Any) -> str:
    """What a value is, in a word or two, however large it is."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)[:40]
    if isinstance(value, (str, bytes)):
        return f"{'text' if isinstance(value, str) else 'bytes'} {value[:40]!r}"
    if isinstance(value, os.PathLike):
        return f"the path {os.fspath(value)!r}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def did_you_mean(name: Any, known: Collection[str]) -> str | None:
    """A hint that names what is nearly this name, where there is any."""
    near = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    if not near and isinstance(name, str):  # another case
        near = [one for one in known if one.lower() == name.lower()][:1]
    return f"did you mean {near[0]!r}?" if near else None
