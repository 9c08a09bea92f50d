"""Choose tools of a spec: by name, tag, method or path.

Patterns     ``NAME``, ``tag:TAG``, ``method:GET`` or ``path:/v1/*``, each with the wildcards ``*``, ``?`` and ``[…]``
             of file names. Methods are compared in any case.
Invariants   a tool that is not chosen is not read: what is wrong in it is of no matter. A pattern that no tool has is
             an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from ..errors import SpecError
from .model import quote

KINDS = ("tag", "method", "path")
"""What a pattern can speak of, beside the name."""


class Selection:
    """The tools that are wanted.

    Args:
        only: patterns; a tool has to have one of them. None: every tool may do.
        but: patterns; a tool that has one of them is left out.
    """

    def __init__(self, only: Collection[str] = (), but: Collection[str] = ()) -> None:
        self.only, self.but = tuple(only), tuple(but)
        self._met: set[str] = set()
        self._seen: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.only or self.but)

    def takes(self, name: str, tags: Collection[str] = (), method: str = "", path: str = "") -> bool:
        """Whether a tool is wanted."""
        if not self:
            return True
        said = {"name": [name], "tag": list(tags), "method": [method.lower()], "path": [path]}
        for kind, words in said.items():
            self._seen.setdefault(kind, set()).update(word for word in words if word)
        wanted = self._has(self.only, said) or not self.only
        return not self._has(self.but, said) and wanted

    def _has(self, patterns: Iterable[str], said: dict[str, list[str]]) -> bool:
        found = [pattern for pattern in patterns if _matches(pattern, said)]
        self._met.update(found)
        return bool(found)

    def check(self, name: str) -> None:
        """Refuse patterns that no tool of a spec of this name has.

        Raises:
            SpecError: with the names that are near.
        """
        for pattern in (*self.only, *self.but):
            if pattern in self._met:
                continue
            kind, word = parted(pattern)
            near = difflib.get_close_matches(word, sorted(self._seen.get(kind, ())), 3)
            raise SpecError(
                f"no tool has {'a name' if kind == 'name' else f'a {kind}'} like this",
                place=f"{name}#",
                found=quote(pattern),
                expected="NAME, tag:TAG, method:GET or path:/v1/*, of which * stands for any characters",
                hint=f"did you mean {' or '.join(near)}?" if near else None,
            )


def parted(pattern: str) -> tuple[str, str]:
    """What a pattern speaks of, and what it says."""
    kind, colon, word = pattern.partition(":")
    if colon and kind in KINDS:
        return kind, word.lower() if kind == "method" else word
    return "name", pattern


def _matches(pattern: str, said: dict[str, list[str]]) -> bool:
    kind, word = parted(pattern)
    return any(fnmatchcase(one, word) for one in said[kind])
