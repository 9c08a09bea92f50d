"""Any place that fsspec knows as a store: s3://, gs://, http://, memory://, hf://, sftp://, and so on.

Leaves out   what the files mean: see store.py. Credentials and options: fsspec's own configuration, or
             keyword arguments.
Invariants   fsspec is imported here and on use only. There is no lock: writers agree because a file that is already
             there is kept (`replace=False`), or is overwritten with a file that is as good. Whatever a half-written
             or foreign file holds is found out by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ..errors import StoreError
from .files import Item

T = TypeVar("T")
_WITHOUT_FOLDERS = frozenset("http https s3 s3a gs gcs az abfs abfss adl oci oss hf".split())
"""Schemes of places where a file needs no folder: to make one would make a bucket of any name."""
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created", "modified")


class Remote:
    """Files under a URL; see `Files`.

    Args:
        url: with its scheme.
        options: for the file system, as ``fsspec.core.url_to_fs`` takes them.
    """

    exclusive = False

    def __init__(self, url: str, **options: Any) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise StoreError(
                "stores other than folders need fsspec", place=url, hint="pip install 'toolc[store]'"
            ) from None
        scheme, mark, rest = url.partition("://")
        self.place = scheme + mark + rest.rstrip("/")
        try:
            fs, root = self._try("open", "", lambda: url_to_fs(self.place + "/", **options))
        except FileNotFoundError as error:  # of an archive that is looked into at once
            raise self._unreachable("open", "", error) from error
        self.fs, self.root = fs, root.rstrip("/")
        self._schemes = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}

    def _try(self, what: str, name: str, work: Callable[[], T]) -> T:
        """Work that may fail in the way of any file system: they have no error in common."""
        try:
            return work()
        except (FileExistsError, StoreError):
            raise
        except FileNotFoundError as error:
            cause = error.__cause__  # http:// says so of a server that does not answer, too
            if not isinstance(cause, OSError) or isinstance(cause, FileNotFoundError):
                raise
            raise self._unreachable(what, name, cause) from error
        except NotImplementedError:
            raise StoreError(
                f"cannot {what} here", place=self.place, hint="this kind of store may only be read"
            ) from None
        except ImportError as error:
            raise StoreError(
                f"cannot {what} this store: {error}",
                place=self.place,
                hint="install what fsspec names for this kind of URL",
            ) from error
        except Exception as error:
            raise self._unreachable(what, name, error) from error

    def _unreachable(self, what: str, name: str, error: Exception) -> StoreError:
        return StoreError(
            f"cannot {what} {name or 'this store'}",
            place=self.place,
            found=f"{type(error).__name__}: {error}"[:400],
            hint="check the URL, the credentials and the network",
        )

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def exists(self) -> bool:
        """True: a bucket's folder is there while a file is in it, and a web server need not say."""
        return True

    @contextmanager
    def lock(self) -> Iterator[None]:
        yield

    def read(self, name: str, limit: int, first: int | None = None) -> bytes | None:
        def work() -> bytes:
            if first is not None:
                return self.fs.cat_file(self._at(name), start=0, end=first)[:first]
            with self.fs.open(self._at(name), "rb", cache_type="none") as file:
                return file.read(limit + 1)

        try:
            data = self._try("read", name, work)
        except FileNotFoundError:
            return None
        if first is None and len(data) > limit:
            raise StoreError(place=self.place, found=f"more than {limit} bytes in {name}", expected=f"at most {limit}")
        return bytes(data)

    def path(self, name: str) -> Path | None:
        return None

    def has(self, name: str) -> bool:
        self.fs.invalidate_cache()
        return bool(self._try("look for", name, lambda: self.fs.exists(self._at(name))))

    def write(self, name: str, data: bytes, replace: bool = True) -> bool:
        def work() -> bool:
            if _WITHOUT_FOLDERS.isdisjoint(self._schemes):
                self.fs.makedirs(self.root, exist_ok=True)
            if not replace and self.has(name):
                return False
            self.fs.pipe_file(self._at(name), data, mode="overwrite" if replace else "create")
            return True

        try:
            return self._try("write", name, work)
        except FileExistsError:
            return False  # another was quicker
        except FileNotFoundError as error:
            raise self._unreachable("write", name, error) from error

    def remove(self, name: str) -> None:
        try:
            self._try("remove", name, lambda: self.fs.rm_file(self._at(name)))
        except FileNotFoundError:
            pass  # another was quicker
        self.fs.invalidate_cache()

    def touch(self, name: str) -> None:
        """Nothing: most places cannot note a use without a copy."""

    def items(self) -> list[Item]:
        self.fs.invalidate_cache()
        try:
            listed = self._try("list", "", lambda: self.fs.ls(self.root, detail=True))
        except FileNotFoundError as error:
            if "NoSuchBucket" in repr(error.__cause__):  # as S3 says; a folder of it is there while a file is in it
                raise StoreError("there is no such bucket", place=self.place, found=self.root) from error
            return []
        files = [entry for entry in listed if entry.get("type") == "file"]
        return sorted(
            (Item(entry["name"].rsplit("/", 1)[-1], entry.get("size"), _time(entry)) for entry in files),
            key=lambda item: item.name,
        )

    def sweep(self) -> int:
        return 0


def _time(entry: dict[str, Any]) -> float | None:
    """When a listed file was written; None where the place does not say."""
    for key in _TIMES:
        value = entry.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
            except ValueError:
                continue
    return None
