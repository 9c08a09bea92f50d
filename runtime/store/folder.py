"""A folder as a store: mapped files, one lock for writers, none for readers.

Leaves out   what the files mean: see store.py.
Invariants   files are replaced, never rewritten, so that a mapped file stays what it was; whoever writes or removes
             holds the lock, which the system takes back from a process that dies; so a half-written file that is seen
             under the lock belongs to nobody. A folder that may only be read is a store that may only be read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreError
from ..format.container import TEMPORARY, replace_file
from .files import Item

LOCK = ".lock"
URL = re.compile(r"file:", re.IGNORECASE)
_HALF = re.compile(rf"\.[0-9a-f]{{32}}\..*\.[0-9a-f]{{12}}{re.escape(TEMPORARY)}")  # see `replace_file`


class Folder:
    """Files of a folder; see `Files`. The folder is made when something is first written."""

    exclusive = True

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.place = str(folder)
        self._threads = threading.Lock()

    def _failed(self, what: str, name: str, error: OSError) -> StoreError:
        return StoreError(
            f"cannot {what} this file of the store",
            place=str(self.folder / name),
            found=error.strerror or str(error),
            hint="check the folder, its rights, and that the disk has room",
        )

    def _is(self, kind: Callable[[int], bool], name: str) -> bool:
        try:
            return kind(os.stat(self.folder / name).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._failed("look for", name, error) from error

    def exists(self) -> bool:
        return self._is(stat.S_ISDIR, "")

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._threads:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            except (FileExistsError, NotADirectoryError) as error:
                raise StoreError(
                    "this is a file, or in one; a store is a folder",
                    place=self.place,
                    found=error.strerror,
                    hint="name another folder",
                ) from error
            except OSError as error:
                raise self._failed("write", LOCK, error) from error
            try:
                _lock(handle)
                yield
            finally:
                os.close(handle)  # gives the lock back

    def read(self, name: str, limit: int, first: int | None = None) -> bytes | None:
        try:
            with open(self.folder / name, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if first is None and size > limit:
                    raise StoreError(place=self.place, found=f"{size} bytes in {name}", expected=f"at most {limit}")
                return file.read(first if first is not None else size)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", name, error) from error

    def path(self, name: str) -> Path | None:
        return self.folder / name

    def has(self, name: str) -> bool:
        return self._is(stat.S_ISREG, name)

    def write(self, name: str, data: bytes, replace: bool = True) -> bool:
        target = self.folder / name
        if not replace and target.exists():
            return False
        replace_file(target, [data])
        return True

    def remove(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("remove", name, error) from error

    def touch(self, name: str) -> None:
        try:
            os.utime(self.folder / name)
        except OSError:
            pass  # read-only, another's file, or just removed: its use goes unnoted and nothing else changes

    def items(self) -> list[Item]:
        found: list[Item] = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    try:
                        about = entry.stat()
                    except OSError as error:
                        if error.errno not in (errno.ENOENT, errno.ELOOP):
                            raise
                        continue  # removed since it was listed, or a link that leads nowhere
                    if not entry.name.startswith(".") and entry.is_file():
                        found.append(Item(entry.name, about.st_size, about.st_mtime))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._failed("list", "", error) from error
        return sorted(found)

    def sweep(self) -> int:
        left = [path for path in self.folder.glob(f".*{TEMPORARY}") if _HALF.fullmatch(path.name) and path.is_file()]
        for path in left:
            self.remove(path.name)
        return len(left)


def folder_of(url: str) -> str:
    """The folder that a ``file:`` URL names.

    Raises:
        StoreError: it names another machine, no absolute path, or has a query or a fragment.
    """
    from urllib.parse import unquote_to_bytes

    rest = url.partition(":")[2]
    host = ""
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    if host.lower() not in ("", "localhost"):
        wrong = f"the host {host!r}"
    elif not rest.startswith("/"):
        wrong = f"the path {rest!r}"
    elif more := re.search(r"[?#].*", rest, re.DOTALL):
        wrong = repr(more[0])
    else:
        return os.fsdecode(unquote_to_bytes(rest))
    raise StoreError(
        "this URL names no folder of this machine",
        place=url,
        found=wrong,
        expected="file:///absolute/path",
        hint="a relative folder is given without file:, and ? and # in a URL are written %3F and %23",
    )


def _lock(handle: int) -> None:
    """Wait for the lock on an open file; it ends with the handle, or with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt  # type: ignore[import-not-found,unused-ignore]

        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
                return
            except OSError:
                continue  # it gives up after ten seconds
    fcntl.flock(handle, fcntl.LOCK_EX)
