"""What a store is made of: named files, wherever they lie.

Leaves out   folders (folder.py), every other place (remote.py), what the files mean (store.py).
Invariants   a file is read whole or not at all; a name has no separators, so it cannot leave its place.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol


class Item(NamedTuple):
    """A file of a store.

    Attributes:
        name: without its place.
        size: bytes; None where the place does not say.
        used: when it was last used (folders) or written (other places), in seconds since 1970; None where the place
            does not say.
    """

    name: str
    size: int | None
    used: float | None


class Files(Protocol):
    """A place that holds files. Errors of the place are StoreErrors."""

    place: str
    exclusive: bool
    """Whether `lock` keeps every other writer away, in this process and in others."""

    def exists(self) -> bool:
        """Whether there is such a place; True where that shows only once something is in it."""

    def lock(self) -> AbstractContextManager[None]:
        """Hold the place for writing."""

    def read(self, name: str, limit: int, first: int | None = None) -> bytes | None:
        """The bytes of a file, or only the first of them; None if it is not there.

        Raises:
            StoreError: it has more bytes than `limit`, or cannot be read.
        """

    def path(self, name: str) -> Path | None:
        """Where a file can be mapped; None where only bytes can be had. It need not be there."""

    def has(self, name: str) -> bool:
        """Whether the file is there."""

    def write(self, name: str, data: bytes, replace: bool = True) -> bool:
        """Write a file, whole or not at all; without `replace` only if it is not there. Whether it was written."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def touch(self, name: str) -> None:
        """Note that a file was used just now, where that can be noted."""

    def items(self) -> list[Item]:
        """Every file, by name."""

    def sweep(self) -> int:
        """Remove what writers that were killed left behind; how many files. Under the lock."""
