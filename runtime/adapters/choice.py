"""What a request asks for, and the bundle that answers: shared by the adapters of serving engines.

Leaves out   the engines: see vllm.py, sglang.py.
Invariants   a request names a bundle; it never gives a path, since requests come from strangers. Bundles lie in the
             folders of $TOOLC_BUNDLES. A file is opened, verified and kept until it changes.
Request      flat keys, since HTTP front ends allow no nested ones: `toolc_bundle` (a name, with or without ".toolc"),
             `toolc_entry` (default "start").
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bundle import Bundle
from ..errors import BundleError, DecodeError
from ..matcher import entry_state

if TYPE_CHECKING:
    from ..vocab import Vocab

FOLDERS = "TOOLC_BUNDLES"
MEMORY = "TOOLC_DEVICE_BYTES"
SUFFIX = ".toolc"
PREFIX = "toolc_"
KEYS = ("toolc_bundle", "toolc_entry")


def memory_limit() -> int | None:
    """The most bytes that tables may take on a device: $TOOLC_DEVICE_BYTES; None if it is not set."""
    given = os.environ.get(MEMORY)
    if given is not None and not given.isdecimal():
        raise DecodeError("no number of bytes", place=f"${MEMORY}", found=repr(given))
    return None if given is None else int(given)


class Choice(NamedTuple):
    """A bundle and where its text begins."""

    bundle: Bundle
    entry: str


class Shelf:
    """The bundles of some folders by name.

    Args:
        folders: where they lie; those of $TOOLC_BUNDLES if None.
    """

    def __init__(self, folders: str | None = None) -> None:
        self._folders = folders
        self._held: dict[Path, tuple[tuple[int, int], Bundle]] = {}
        self._lock = threading.Lock()

    def open(self, name: str) -> Bundle:
        """The bundle of a name.

        Raises:
            BundleError: there is none, or it cannot be trusted.
        """
        given = os.environ.get(FOLDERS, "") if self._folders is None else self._folders
        folders = [Path(part) for part in given.split(os.pathsep) if part]
        if not folders:
            raise BundleError(
                "there is no folder of bundles", place=f"${FOLDERS}", hint="set it to the folder that holds them"
            )
        if not name or name != Path(name).name or name in (".", ".."):
            raise BundleError("no name of a bundle", found=repr(name), expected="a file name without a folder")
        for folder in folders:
            for path in (folder / name, folder / (name + SUFFIX)):
                if path.is_file():
                    return self._open(path)
        raise BundleError(
            "no such bundle",
            found=repr(name),
            expected="one of " + (", ".join(sorted(p.stem for f in folders for p in f.glob("*" + SUFFIX))) or "none"),
            place=given,
        )

    def _open(self, path: Path) -> Bundle:
        about = path.stat()
        stamp = (about.st_mtime_ns, about.st_size)
        with self._lock:
            held = self._held.get(path)
            if held is None or held[0] != stamp:
                held = self._held[path] = (stamp, Bundle.open(path))
            return held[1]

    def choose(self, arguments: Mapping[str, Any] | None, vocab: Vocab | None = None) -> Choice | None:
        """What the arguments of a request ask for; None if they ask for nothing of toolc.

        Args:
            arguments: those of the request, other ones among them.
            vocab: that of the bundles which the engine serves already, if it does.

        Raises:
            DecodeError, BundleError: they cannot be met.
        """
        mine = {key: value for key, value in (arguments or {}).items() if key.startswith(PREFIX)}
        if not mine:
            return None
        for key, value in mine.items():
            if key not in KEYS:
                raise DecodeError("no such argument", found=key, expected="one of " + ", ".join(KEYS))
            if not isinstance(value, str):
                raise DecodeError(f"{key} is no text", found=repr(value)[:80], expected="a text")
        if "toolc_bundle" not in mine:
            raise DecodeError("the request names no bundle", found=", ".join(sorted(mine)), expected="toolc_bundle too")
        bundle = self.open(mine["toolc_bundle"])
        if vocab is not None and bundle.vocab.digest != vocab.digest:
            raise DecodeError(
                "the bundle belongs to another tokenizer",
                place=bundle.name,
                found=bundle.vocab.digest,
                expected=vocab.digest,
            )
        entry = mine.get("toolc_entry", "start")
        entry_state(bundle, entry)
        return Choice(bundle, entry)
