"""Find the documents that a spec refers to: beside it, in a folder that is named, or from a loader. Never fetch one.

Leaves out   references inside of schemas (../schema/references.py), which find these documents by their URI.
Invariants   files are looked for in the folder of the spec and in the folder that is named, never above them. What is
             not found is left to who follows the reference: it is an error only there. A document of an OpenAPI
             description is put into it, under `HOME`; others stay beside the spec.
Source       RFC 3986, 5; JSON Schema 2020-12 core, 8.2; OpenAPI 3.1.1, 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote as percent
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ..errors import SpecError
from .model import escape
from .source import MAX_BYTES, load_document

Loader: TypeAlias = Callable[[str], Any]
"""The document at a URI without fragment, or None."""

HOME = "documents"
"""Key of an OpenAPI description that holds the documents it refers to, by their URIs."""
MOST = 1000
"""Documents that one spec may need."""
MOST_FILES = 10_000
"""Files of a folder that are looked through for an identifier."""
_ENDINGS = ("", ".json", ".yaml", ".yml")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Files:
    """A loader of files.

    Args:
        beside: the folder of the spec; None where it is no file.
        base: the identifier of the spec; empty where it has none.
        folder: the folder that is named; None for none.
    """

    def __init__(self, beside: Path | None, base: str = "", folder: Path | None = None) -> None:
        self._beside = None if beside is None else beside.resolve()
        self._base = base
        self._folder = None if folder is None else folder.resolve()
        if self._folder is not None and not self._folder.is_dir():
            raise SpecError("this is no folder of schemas", place=str(folder), expected="a folder")

    def __call__(self, uri: str) -> Any:
        for path in self._candidates(uri):
            for ending in _ENDINGS:
                file = Path(f"{path}{ending}")
                if file.is_file():
                    return load_document(file, None, MAX_BYTES)[0]
        return self._identified(uri) if urlsplit(uri).scheme else None

    def _candidates(self, uri: str) -> Iterator[Path]:
        parts = urlsplit(uri)
        path = unquote(parts.path)
        around = self._base.rpartition("/")[0] + "/" if self._base else ""
        if "\0" in path:
            return
        if self._beside is not None and (not parts.scheme or (around and uri.startswith(around))):
            near = path if not parts.scheme else unquote(uri[len(around) :])
            yield from self._inside(self._beside, near)
        if self._folder is not None:
            plain = "/".join(step for step in path.split("/") if step not in ("", ".", ".."))
            if parts.netloc:
                yield from self._inside(self._folder, f"{parts.netloc}/{plain}")
            yield from self._inside(self._folder, plain)

    def _inside(self, folder: Path, path: str) -> Iterator[Path]:
        """A path from a folder on, if it stays in one of the two."""
        found = (folder / path).resolve()
        if path and any(home is not None and found.is_relative_to(home) for home in (self._beside, self._folder)):
            yield found

    def _identified(self, uri: str) -> Any:
        """The document of the folder that says of itself that it has this URI."""
        if self._folder is None:
            return None
        said = uri.encode()
        for number, file in enumerate(sorted(self._folder.rglob("*"))):
            if number == MOST_FILES:
                return None
            if file.suffix not in _ENDINGS[1:] or not file.is_file() or said not in file.read_bytes():
                continue
            document = load_document(file, None, MAX_BYTES)[0]
            if isinstance(document, dict) and any(
                isinstance(document.get(key), str) and urldefrag(document[key])[0] == uri for key in ("$id", "id")
            ):
                return document
        return None


def loader_of(schemas: Loader | str | Path | None, source: Any, document: Any) -> Loader:
    """The loader of a spec.

    Args:
        schemas: a loader, or a folder; None: only what stands beside the spec.
        source: what the spec was read from.
        document: what it is.
    """
    beside = source.parent if isinstance(source, Path) else None
    folder = Path(schemas) if isinstance(schemas, (str, Path)) else None
    said = document.get("$self", document.get("$id", document.get("id"))) if isinstance(document, dict) else None
    files = Files(beside, said if isinstance(said, str) else "", folder)
    if not callable(schemas):
        return files

    def load(uri: str) -> Any:
        found = schemas(uri)
        return files(uri) if found is None else found

    return load


def documents_of(document: Any, name: str, load: Loader) -> dict[str, Any]:
    """All documents that a spec needs, by URI: those that it refers to, those that they refer to, and so on.

    Args:
        name: the file of the spec; what refers to it means the spec itself.

    Raises:
        SpecError: there are too many, or one cannot be read.
    """
    found: dict[str, Any] = {}
    missing = {"", name}
    pending = [(document, "")]
    while pending:
        one, base = pending.pop(0)
        for uri in dict.fromkeys(_referred(one, base)):
            if uri in found or uri in missing:
                continue
            if len(found) == MOST:
                raise SpecError("the spec refers to too many documents", place=f"{name}#", expected=f"at most {MOST:,}")
            loaded = load(uri)
            if loaded is None:
                missing.add(uri)
            else:
                found[uri] = loaded
                pending.append((loaded, uri))
    return found


def _referred(document: Any, base: str) -> Iterator[str]:
    """URIs, without fragments, of what a document refers to; also what an example in it seems to refer to."""
    stack = [(document, base)]
    while stack:
        value, base = stack.pop()
        if isinstance(value, list):
            stack += ((one, base) for one in reversed(value) if isinstance(one, (dict, list)))
        if not isinstance(value, dict):
            continue
        for key in ("$id", "id"):
            if isinstance(value.get(key), str) and not value[key].startswith("#"):
                base = _joined(base, value[key])
        for key in _REFERENCES:
            ref = value.get(key)
            if isinstance(ref, str) and not ref.startswith("#"):
                uri = _joined(base, ref)
                if uri and uri != base:
                    yield uri
        stack += ((one, base) for one in reversed(value.values()) if isinstance(one, (dict, list)))


def _joined(base: str, ref: str) -> str:
    """A reference without its fragment, as a URI; empty where it is none."""
    try:
        return urldefrag(urljoin(base, ref))[0]
    except ValueError:
        return ""


def embedded(document: dict[str, Any], name: str, documents: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI description with the documents that it refers to in it, and all references led there."""
    if not documents:
        return document
    inside = {uri: _led(one, uri, name, documents) for uri, one in documents.items()}
    led: dict[str, Any] = _led(document, "", name, documents)
    return {**led, HOME: inside}


def _led(value: Any, base: str, name: str, documents: dict[str, Any]) -> Any:
    """A copy whose references lead into the description.

    Args:
        base: the URI of the document; empty for the description itself.
    """
    if isinstance(value, list):
        return [_led(one, base, name, documents) for one in value]
    if not isinstance(value, dict):
        return value
    out = {key: _led(one, base, name, documents) for key, one in value.items()}
    if isinstance(out.get("$ref"), str):
        out["$ref"] = _led_reference(out["$ref"], base, name, documents)
    mapping = out.get("mapping")
    if isinstance(mapping, dict) and isinstance(out.get("propertyName"), str):
        out["mapping"] = {
            tag: _led_reference(ref, base, name, documents)
            if isinstance(ref, str) and ("/" in ref or "." in ref)
            else ref
            for tag, ref in mapping.items()
        }
    return out


def _led_reference(ref: str, base: str, name: str, documents: dict[str, Any]) -> str:
    uri = base if ref.startswith("#") else _joined(base, ref)
    fragment = urldefrag(ref)[1]
    if uri in ("", name):
        return ref if uri == base else f"#{fragment}"
    return f"#/{HOME}/{percent(escape(uri), safe='~')}{fragment}" if uri in documents else ref
