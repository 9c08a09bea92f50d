"""What a request asks for, and the bundle that answers: shared by the adapters of serving engines.

Leaves out   the engines: see vllm.py, sglang.py.
Invariants   a request names a bundle; it never gives a path, since requests come from strangers. Bundles lie in the
             folders of $TOOLC_BUNDLES. A file is opened, verified and kept until it changes. An engine has one
             tokenizer: that of the first bundle that it admitted; bundles of others are refused.
Request      flat keys, since HTTP front ends allow no nested ones: `toolc_bundle` (a name, with or without ".toolc"),
             `toolc_entry` (default "start"), `toolc_tools` (names, a list or joined by commas: only these tools may be
             called), `toolc_budget` (tokens, refused where it cannot be kept; 0: none). Without the last, the tokens
             that the engine itself allows the request are its budget; too few of them are refused, unless `toolc_cut`
             is 1: then the text is cut. `toolc_resident`: turns that may be
             answered in the engine, only where it drafts (see vllm_scheduler.py).
"""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BundleError, DecodeError
from ..format.bundle import Bundle
from ..format.entries import checked_budget, entry_state
from ..selection.subset import subset
from ..store.fetch import cache_dir
from ..store.folder import Folder
from ..store.store import open_store
from .admitted import OPEN, Admitted

if TYPE_CHECKING:
    from ..format.vocab import Vocab

_LOG = logging.getLogger(__name__)

FOLDERS = "TOOLC_BUNDLES"
MEMORY = "TOOLC_DEVICE_BYTES"
SUFFIX = ".toolc"
PREFIX = "toolc_"
RESIDENT = "toolc_resident"
KEYS = ("toolc_bundle", "toolc_entry", "toolc_tools", "toolc_budget", "toolc_cut", RESIDENT)
LONGEST = 255 - len(SUFFIX)  # bytes of a name: more no file system has
ADMITTED = "toolc_admitted"
"""What a front end adds: the hash of the file that it admitted. What a client says there is dropped."""
SUBSETS = 64  # choices of tools that are kept, those used last


def memory_limit() -> int | None:
    """The most bytes that tables may take on a device: $TOOLC_DEVICE_BYTES; None if it is not set."""
    given = os.environ.get(MEMORY)
    if given is not None and not given.isdecimal():
        raise DecodeError("no number of bytes", place=f"${MEMORY}", found=repr(given))
    return None if given is None else int(given)


def store_folders() -> list[Path]:
    """Where the bundles lie that were compiled for requests: $TOOLC_STORE, if it is a folder, and the cache."""
    store = os.environ.get("TOOLC_STORE")
    files = open_store(store).files if store else None
    return [files.folder, cache_dir()] if isinstance(files, Folder) else [cache_dir()]


class Choice(NamedTuple):
    """What a request asks for.

    Attributes:
        bundle: of the tools that may be called.
        entry: where its text begins.
        budget: as the request states it; 0: none, None: the engine's.
        key: the hash of the bundle's file, where copies are kept.
    """

    bundle: Bundle
    entry: str
    budget: int | None = None
    key: str | None = None

    def within(self, most: int | None) -> int | None:
        """The budget of a request that the engine cuts after `most` tokens; None for none, or none to be kept.

        What a context leaves is known only once the request runs: if that is too little, the text will be cut.
        """
        limits = [limit for limit in (self.budget, most) if limit is not None]
        need = self.bundle.min_tokens[self.entry]
        if self.budget == 0 or not limits or need is None:
            return None
        if min(limits) < need:
            _LOG.warning(
                "%s, entry %s: the text will be cut: %d tokens are left, and %d are needed to end it",
                *(self.bundle.name, self.entry, min(limits), need),
            )
            return None
        return min(limits)


class Shelf:
    """The bundles of some folders by name.

    Args:
        folders: where they lie; those of $TOOLC_BUNDLES if None.
        copies: where copies of what is opened are kept for other processes, if anywhere.
    """

    def __init__(self, folders: str | None = None, copies: Admitted | None = None) -> None:
        self._folders, self._copies = folders, copies
        self._held: OrderedDict[Path, tuple[tuple[int, ...], Bundle, str | None]] = OrderedDict()
        self._subsets: OrderedDict[tuple[Bundle, frozenset[str]], Bundle] = OrderedDict()
        self.vocab: Vocab | None = None
        """Of the bundles that were admitted."""
        self._lock = threading.Lock()

    def open(self, name: str) -> Bundle:
        """The bundle of a name.

        Raises:
            BundleError: there is none, or it cannot be trusted.
        """
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[Bundle, str | None]:
        """The bundle of a name, and the hash of its copy, if one is kept."""
        given = os.environ.get(FOLDERS, "") if self._folders is None else self._folders
        folders = [Path(part) for part in given.split(os.pathsep) if part]
        if self._folders is None:
            folders += store_folders()
        if not folders:
            raise BundleError(
                "there is no folder of bundles", place=f"${FOLDERS}", hint="set it to the folder that holds them"
            )
        long = len(name.encode(errors="surrogatepass")) > LONGEST
        if not name or long or name != Path(name).name or name in (".", ".."):
            raise BundleError(
                "no name of a bundle",
                found=repr(name[:80]),
                expected=f"a file name without a folder, of at most {LONGEST} bytes",
            )
        for folder in folders:
            for path in (folder / name, folder / (name + SUFFIX)):
                if path.is_file():
                    return self._open(path)
        raise BundleError(
            "no such bundle", found=repr(name), expected=f"the name of a file in the folders of the server's ${FOLDERS}"
        )

    def _open(self, path: Path) -> tuple[Bundle, str | None]:
        about = path.stat()
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        with self._lock:
            held = self._held.get(path)
            if held is None or held[0] != stamp or (held[2] and self._copies and not self._copies.touch(held[2])):
                if self._copies is None:
                    held = (stamp, Bundle.open(path), None)
                else:
                    key, bundle = self._copies.take(path)
                    held = (stamp, bundle, key)
                self._held[path] = held
                while len(self._held) > OPEN:
                    self._held.popitem(last=False)
            self._held.move_to_end(path)
            return held[1], held[2]

    def _subset(self, bundle: Bundle, tools: frozenset[str]) -> Bundle:
        with self._lock:
            key = bundle, tools
            found = self._subsets.get(key)
            if found is None:
                found = self._subsets[key] = subset(bundle, sorted(tools))
                while len(self._subsets) > SUBSETS:
                    self._subsets.popitem(last=False)
            self._subsets.move_to_end(key)
            return found

    def admit(self, bundle: Bundle) -> None:
        """Take a bundle for one that the engine serves: the first says of which tokenizer all are.

        Raises:
            DecodeError: it is of another one.
        """
        with self._lock:
            if self.vocab is None:
                self.vocab = bundle.vocab
        if bundle.vocab.digest != self.vocab.digest:
            raise DecodeError(
                "the bundle belongs to another tokenizer than those that were served before",
                place=bundle.name,
                found=bundle.vocab.digest,
                expected=self.vocab.digest,
                hint="compile it for the tokenizer that is served, and with the same ends of turn (--eos)",
            )

    def choose(self, arguments: Mapping[str, Any] | None, most: int | None = None) -> Choice | None:
        """What the arguments of a request ask for; None if they ask for nothing of toolc.

        Args:
            arguments: those of the request, other ones among them.
            most: how many tokens the engine allows the request; None if that is not known.

        Raises:
            DecodeError, BundleError: they cannot be met.
        """
        mine = {key: value for key, value in (arguments or {}).items() if key.startswith(PREFIX)}
        mine.pop(ADMITTED, None)
        if not mine:
            return None
        for name in mine:
            if name not in KEYS:
                raise DecodeError("no such argument", found=name, expected="one of " + ", ".join(KEYS))
        if "toolc_bundle" not in mine:
            raise DecodeError("the request names no bundle", found=", ".join(sorted(mine)), expected="toolc_bundle too")
        bundle, copy = self._find(_text(mine, "toolc_bundle"))
        return self._chosen(mine, bundle, most, copy)

    def admitted(self, arguments: Mapping[str, Any] | None, most: int | None = None) -> Choice | None:
        """What an admitted request asks for, by the copy of its bundle; None if it asks for nothing of toolc.

        Raises:
            DecodeError, BundleError: the copy cannot be opened.
        """
        mine = {key: value for key, value in (arguments or {}).items() if key.startswith(PREFIX)}
        if not mine:
            return None
        if ADMITTED not in mine or self._copies is None:
            raise DecodeError("the request was not admitted", found=", ".join(sorted(mine)), expected=ADMITTED)
        copy = _text(mine, ADMITTED)
        return self._chosen(mine, self._copies.open(copy), most, copy)

    def _chosen(self, mine: Mapping[str, Any], bundle: Bundle, most: int | None, key: str | None) -> Choice:
        """The choice of a request from its bundle on."""
        if "toolc_tools" in mine:
            bundle = self._subset(bundle, _names(mine["toolc_tools"]))
        entry = _text(mine, "toolc_entry") if "toolc_entry" in mine else "start"
        entry_state(bundle, entry)
        budget = _number(mine, "toolc_budget")
        _number(mine, RESIDENT)
        if budget:
            checked_budget(bundle, entry, budget if most is None else min(budget, most))
        if not _number(mine, "toolc_cut"):
            check_most(bundle, entry, budget, most)
        return Choice(bundle, entry, budget, key)


def check_most(bundle: Bundle, entry: str, budget: int | None, most: int | None) -> None:
    """Refuse a request that its engine cuts before the shortest text is over, unless it asks for no budget (0).

    Args:
        bundle, entry: what it asks for.
        budget: as the request states it; None if it does not.
        most: how many tokens the engine allows it; None for any number.

    Raises:
        DecodeError: there are too few.
    """
    need = bundle.min_tokens[entry]
    if budget is None and most is not None and need is not None and most < need:
        raise DecodeError(
            "the request allows too few tokens to end its text",
            place=f"{bundle.name}, entry {entry}",
            found=f"max_tokens {most}",
            expected=f"at least {need}, with the end of turn",
            hint="allow more, or give toolc_budget 0 to have the text cut",
        )


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments[key]
    if not isinstance(value, str):
        raise DecodeError(f"{key} is no text", found=repr(value)[:80], expected="a text")
    return value


def _names(value: Any) -> frozenset[str]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise DecodeError(
            "toolc_tools are no names", found=repr(value)[:80], expected="a list of texts, or one joined by commas"
        )
    return frozenset(part.strip() for part in parts)


def _number(arguments: Mapping[str, Any], key: str) -> int | None:
    value = arguments.get(key)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if key in arguments and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        what = "number of tokens" if key == "toolc_budget" else "number"
        raise DecodeError(f"{key} is no {what}", found=repr(value)[:80], expected="0 or more")
    return value
