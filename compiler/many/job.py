"""One spec for one tokenizer, into a store: done by any process that can reach the store.

Leaves out   which process that is (pool.py, cluster.py), the command line (../commands/compile_many.py).
Invariants   a job says all that a worker needs but the vocab, which is in the store; what the store holds already and
             is sound is not compiled again; an outcome is plain data. An error of ours is an outcome; any other is one,
             too, with its traceback, so that one bug does not end a run of thousands.
"""

from __future__ import annotations

import functools
import os
import stat
import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from toolc.runtime.errors import BundleError, ToolcError
from toolc.runtime.store.signing import SigningKey, signature_name
from toolc.runtime.store.store import Store, open_store

from ..dialects import SYNTAX_OF_SUFFIX
from ..options import Options

COMPILED, REUSED, REFUSED, FAILED = "compiled", "reused", "refused", "failed"
ENDINGS = (".json", ".yaml", ".yml", *SYNTAX_OF_SUFFIX)


@dataclass(frozen=True)
class Job:
    """What to compile and where to put it.

    Attributes:
        name: of the spec, as the report calls it; its path, unless `data` is given.
        data: the spec itself, for workers that cannot see the file.
        tokenizer: as the report calls it.
        vocab: digest of its vocab, which is in the store.
        options: how to compile.
        store: folder or URL.
        store_bytes: the size limit of a folder.
        sign: PEM file of the private key that signs, if any.
        max_spec_bytes: the largest spec that is read.
        protocol: of specs with tools, where the options name none; or the error that there is none, as
            ``ToolcError.as_dict``.
    """

    name: str
    data: bytes | None
    tokenizer: str
    vocab: str
    options: Options
    store: str
    store_bytes: int | None = None
    sign: str | None = None
    max_spec_bytes: int | None = None
    protocol: str | Path | dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a job: one of the four words above; `error` as ``ToolcError.as_dict``; `seconds` of wall time;
    `skipped`: the tools that are left out of the bundle, as its report lists them."""

    spec: str
    tokenizer: str
    status: str
    key: str | None
    bytes: int
    seconds: float
    error: dict[str, Any] | None = None
    skipped: list[dict[str, Any]] = field(default_factory=list)


def find_specs(paths: list[str]) -> list[str]:
    """The files that are meant: those named, and every spec or grammar in a folder and its folders, sorted.

    A link that leads nowhere and a folder that cannot be read are among them: the job is refused, not left out.

    Raises:
        ToolcError: a path is not there, or a folder holds no spec.
    """
    from ..errors import SpecError

    found: list[str] = []
    for given in paths:
        path = Path(given)
        if os.path.isdir(given):
            inside = _inside(path)
            if not inside:
                raise SpecError("the folder holds no specs", place=str(path), expected="files " + ", ".join(ENDINGS))
            found += map(str, sorted(inside))
        elif os.path.isfile(given):
            found.append(str(path))
        else:
            raise SpecError("no such file or folder", place=str(given) or '""')
    return list(dict.fromkeys(found))


def _inside(top: Path) -> list[Path]:
    """The specs and grammars of a folder and its folders, and those of these folders that cannot be read.

    Links to folders are followed, after the folders themselves, unless they lead to one that was met: so loops end.
    """
    from ..specs.project import NAMES

    found: list[Path] = []
    met: set[str] = set()
    folders, links = [top], list[Path]()
    while folders or links:
        folder = folders.pop() if folders else links.pop(0)
        if (real := os.path.realpath(folder)) in met:
            continue
        met.add(real)
        try:
            with os.scandir(folder) as entries:
                inside = sorted((Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            found.append(folder)
            continue
        folders += [path for path, is_folder in inside if is_folder]
        links += [path for path, is_folder in inside if not is_folder and os.path.isdir(path)]
        found += [
            path
            for path, _ in inside
            if path.suffix.lower() in ENDINGS and path.name not in NAMES and _may_be_file(path)
        ]
    return found


def _may_be_file(path: Path) -> bool:
    """Whether this is a file, or cannot be looked at, which its job then says."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def _is_lost(path: str | Path) -> bool:
    """Whether this is a link that leads nowhere."""
    return os.path.islink(path) and not os.path.exists(path)


@functools.lru_cache(maxsize=4)
def _store(where: str, max_bytes: int | None) -> Store:
    return open_store(where, max_bytes)


@functools.lru_cache(maxsize=4)
def _signer(path: str) -> SigningKey:
    return SigningKey.read(path)


@functools.lru_cache(maxsize=8)
def _vocab(where: str, digest: str) -> Any:
    return _store(where, None).vocab(digest)


def run_job(job: Job) -> Outcome:
    """Do a job; see the invariants."""
    begin = time.perf_counter()
    key: str | None = None
    error: dict[str, Any] | None = None
    count = 0
    skipped: list[dict[str, Any]] = []
    try:
        status, key, count, skipped = _run(job)
    except ToolcError as caught:
        status, error = REFUSED, caught.as_dict()
    except Exception as caught:
        text = "".join(traceback.format_exception(caught))
        status, error = FAILED, {"error": type(caught).__name__, "message": str(caught), "traceback": text}
    seconds = round(time.perf_counter() - begin, 4)
    return Outcome(job.name, job.tokenizer, status, key, count, seconds, error, skipped)


def _run(job: Job) -> tuple[str, str, int, list[dict[str, Any]]]:
    from ..errors import GrammarError, SpecError
    from ..key import source_key
    from ..pipeline import compile_grammar, compile_spec
    from ..source import beside, grammar_name, read_bytes, read_file

    store = _store(job.store, job.store_bytes)
    signer = None if job.sign is None else _signer(job.sign)
    vocab = _vocab(job.store, job.vocab)
    how = job.options.skip, job.options.selection, job.options.schemas, job.options.repair, job.options.subtypes
    if job.data is None:
        if _is_lost(job.name):
            raise SpecError("the link leads to no file", place=job.name, found=os.readlink(job.name))
        if os.path.isdir(job.name):
            _refuse_folder(job.name)
        source, _ = read_file(job.name, job.max_spec_bytes, *how)
    else:
        source, _ = read_bytes(job.data, Path(job.name), job.max_spec_bytes, *how)
    said = job.options
    if said.protocol is None and not isinstance(source, str) and source.tools:
        if isinstance(job.protocol, dict):
            raise GrammarError(
                **{name: job.protocol[name] for name in ("message", "place", "found", "expected", "hint")}
            )
        said = replace(said, protocol=job.protocol)
    folders = beside(job.name) if job.data is None else ()
    key = source_key(source, vocab, said, grammar_name(job.name), folders)
    if _is_there(store, key, signer):
        skipped = store.get(key, vocab=vocab).meta["spec"].get("skipped", []) if job.options.skip else []
        return REUSED, key, 0, skipped
    options = replace(said, budget=replace(said.budget))
    if isinstance(source, str):
        name = grammar_name(job.name)
        compiled = compile_grammar(source, vocab, options=options, name=name, import_paths=folders)
    else:
        compiled = compile_spec(source, vocab, options=options)
    store.put(compiled.bundle, signer)
    return COMPILED, key, compiled.report["bytes"], compiled.report["skipped"]


def _refuse_folder(path: str) -> NoReturn:
    """Say why a folder could not be searched."""
    from ..errors import SpecError

    reason = "it could not be read before"
    try:
        os.listdir(path)
    except OSError as error:
        reason = error.strerror or str(error)
    raise SpecError("cannot read this folder, so its specs are left out", place=path, found=reason)


def _is_there(store: Store, key: str, signer: SigningKey | None) -> bool:
    """Whether the store holds this bundle; a folder is looked into, elsewhere whoever loads it does."""
    if not store.has(key):
        return False
    if not store.files.exclusive:
        return signer is None or store.files.has(signature_name(key, signer.public))
    try:
        store.get(key, None if signer is None else (signer.public,))
    except BundleError:
        return False
    return True
