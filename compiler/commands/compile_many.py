"""``toolc compile --store``: many specs for many tokenizers, into a store, with one report.

Leaves out   a job (../many/job.py) and who does it (../many/pool.py, cluster.py).
Invariants   a run that was stopped goes on where it was when it is started again: what the store holds is reused. A
             report that cannot be written is refused before the work.
"""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toolc.runtime.format.container import replace_file
from toolc.runtime.store.signing import SigningKey
from toolc.runtime.store.store import open_store

from ..compiled import missing_ends
from ..errors import GrammarError, ToolcError
from ..grammar.protocol import load_protocol
from ..lift.vocab import load_vocab
from ..many.job import COMPILED, FAILED, REFUSED, REUSED, Job, Outcome, find_specs
from ..options import BUILTIN, Options, cores
from ..protocol_choice import Choice, choose, with_choice
from .outputs import output_file
from .store import given
from .terminal import (
    BAD_INPUT,
    BUG,
    PATIENCE,
    SKIPPED,
    Progress,
    console,
    counted,
    facts,
    json_text,
    left_out,
    note,
    note_missing_ends,
    note_missing_marks,
    print_json,
    refuse_usage,
    size,
)
from .warmup import warm

WORDS = (COMPILED, REUSED, REFUSED, FAILED)
SHOWN = 20  # refusals on the terminal; the report has all


def run(
    specs: list[str],
    tokenizers: tuple[str, ...],
    stated: tuple[tuple[str, ...], int | None],
    options: Options,
    *,
    store: str,
    store_bytes: int | None,
    sign: str | None,
    ray: str | None,
    report: str | None,
    max_spec_bytes: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compile every spec for every tokenizer that the store does not hold yet; ``options.jobs`` specs at a time.

    ``stated``: ends of turn and the width of the logits, as `load_vocab` takes them.
    """
    begin = time.perf_counter()
    found = find_specs(specs)
    target = None if report is None else _report_file(report, [*found, *tokenizers, sign])
    if sign is not None:
        with given("--sign"):  # every worker would refuse it of every spec
            SigningKey.read(sign)
    opened = open_store(store, store_bytes)
    where = os.path.abspath(opened.place) if opened.files.exclusive else opened.place
    vocabs = {name: load_vocab(name, *stated) for name in tokenizers or (BUILTIN,)}
    for vocab in vocabs.values():
        opened.put_vocab(vocab)

    one = replace(options, jobs=1)
    if options.protocol is not None:  # the same for every spec, and refused before the work
        chosen: dict[str, Choice | GrammarError | None] = {name: choose(name, options.protocol) for name in vocabs}
    else:
        chosen = {name: _chosen(name) for name in vocabs}
    protocols = {name: _protocol(choice, options.protocol) for name, choice in chosen.items()}
    said = {name: with_choice(one, choice) if isinstance(choice, Choice) else one for name, choice in chosen.items()}
    if options.protocol is None:
        said = dict.fromkeys(vocabs, one)  # what the template says holds of specs with tools: see Job.protocol
    for name, choice in chosen.items():
        if isinstance(choice, Choice):
            note(f"toolc: {name}: protocol {choice.protocol}, {choice.why}")

    def all_jobs() -> Iterator[Job]:
        for name, vocab in vocabs.items():
            for spec in found:
                data = _data(spec) if ray is not None else None
                limits = store_bytes, sign, max_spec_bytes
                yield Job(spec, data, name, vocab.digest, said[name], where, *limits, protocols[name])

    count = len(found) * len(vocabs)
    if ray is not None:
        from ..many.cluster import run_on_ray

        outcomes = run_on_ray(all_jobs(), ray)
    else:
        from ..many.pool import run_local

        with Progress(quiet=as_json or quiet) as progress:
            warm(progress, options.jobs, later=True)
        outcomes = run_local(all_jobs(), max(1, min(options.jobs or cores(), count)))
    rows: list[Outcome] = []
    stopped: KeyboardInterrupt | SystemExit | None = None
    try:
        with _Bar(count, quiet=as_json or quiet) as bar:
            for outcome in outcomes:
                rows.append(outcome)
                bar(outcome)
    except (KeyboardInterrupt, SystemExit) as ended:  # by Ctrl-C or SIGTERM
        stopped = ended
    finally:
        outcomes.close()  # type: ignore[attr-defined]
        with opened.files.lock():
            opened.files.sweep()  # of workers that were ended or killed, now or in an earlier run
    about = {
        "ok": stopped is None and all(row.status in (COMPILED, REUSED) for row in rows),
        "store": opened.place,
        "tokenizers": {name: vocab.digest for name, vocab in vocabs.items()},
        "specs": len(found),
        "jobs": count,
        **{word: sum(row.status == word for row in rows) for word in WORDS},
        "skipped": sum(len(row.skipped) for row in rows),
        "interrupted": stopped is not None,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    rows.sort(key=lambda row: (row.tokenizer, row.spec))
    if any(row.status in (COMPILED, REUSED) for row in rows):
        ends_of: dict[str, list[str]] = {}
        marks_of: dict[str, list[str]] = {}
        about |= {"missing_ends": ends_of, "missing_marks": marks_of}
        for name, which in protocols.items():
            if which is None or isinstance(which, dict):
                continue
            protocol = load_protocol(which)
            if ends := missing_ends(protocol.turn_ends, vocabs[name]):
                note_missing_ends(ends, protocol.name, name)
                ends_of[name] = ends
            if marks := [mark for mark in protocol.marks if mark not in vocabs[name].special]:
                note_missing_marks(marks, protocol.name, name)
                marks_of[name] = marks
    whole = {**about, "rows": [asdict(row) for row in rows]}
    if target is not None:
        replace_file(target, [json_text(whole, indent=1).encode()])
    if as_json:
        print_json(whole if target is None else about)
    else:
        _print(about, rows)
    if stopped is not None:
        raise stopped
    if about[FAILED]:
        sys.exit(BUG)
    if about[REFUSED]:
        sys.exit(BAD_INPUT)
    if about["skipped"]:
        sys.exit(SKIPPED)


def _chosen(tokenizer: str) -> Choice | GrammarError | None:
    """What the chat template of a model says of its protocol; or why it says nothing."""
    try:
        return choose(tokenizer)
    except GrammarError as error:
        return error


def _protocol(choice: Choice | GrammarError | None, otherwise: str | Path | None) -> str | Path | dict[str, Any] | None:
    """The same as a job says it."""
    if isinstance(choice, GrammarError):
        return choice.as_dict()
    return otherwise if choice is None else choice.protocol


def _report_file(report: str, inputs: Iterable[str | None]) -> Path:
    """The file of the report; a usage error where it cannot be written. Nothing is left behind."""
    path = output_file(report, inputs)
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # where `replace_file` will write
            pass
    except OSError as error:
        refuse_usage(f"the output {report} cannot be written: {error.strerror}")
    return path


def _data(spec: str) -> bytes | None:
    """A spec to be sent; None if it cannot be read, which the worker then says in our words."""
    try:
        return Path(spec).read_bytes()
    except OSError:
        return None


def _print(about: dict[str, Any], rows: list[Outcome]) -> None:
    out = console()
    words = ", ".join(f"{about[word]:,} {word}" for word in WORDS if about[word])
    lines = [
        ("store", str(about["store"])),
        (
            "jobs",
            f"{counted(about['specs'], 'spec')} × {counted(len(about['tokenizers']), 'tokenizer')} "
            f"in {about['seconds']:.1f} s: {words}",
        ),
    ]
    written = sum(row.bytes for row in rows)
    if written:
        lines.append(("tables", size(written)))
    if len(rows) == 1 and rows[0].key:
        lines.append(("key", rows[0].key))
    out.print(facts(lines))
    bad = [row for row in rows if row.error is not None]
    for row in bad[:SHOWN]:
        out.print(f"{row.status} {row.spec}\n{textwrap.indent(_told(row.error or {}), '  ')}", soft_wrap=True)
    if len(bad) > SHOWN:
        out.print(f"and {len(bad) - SHOWN} more; --report FILE lists all")
    less = [(row.spec, one) for row in rows for one in row.skipped]
    for spec, one in less[:SHOWN]:
        note(f"toolc: left out of {spec}: {left_out(one)}")
    if len(less) > SHOWN:
        note(f"toolc: and {len(less) - SHOWN} tools more; --report FILE lists all")


def _told(error: dict[str, Any]) -> str:
    """The text of an error that came as data, as the error itself gives it."""
    parts = {part: error.get(part) for part in ("place", "found", "expected", "hint")}
    kind = type(str(error["error"]), (ToolcError,), {})
    return kind(error["message"], **parts).titled


class _Bar:
    """A bar on a terminal; elsewhere a line now and then, once the work has taken a second."""

    EVERY = 10.0

    def __init__(self, count: int, quiet: bool) -> None:
        self.count, self.done, self.quiet = count, 0, quiet
        self.words = dict.fromkeys(WORDS, 0)
        self._next = time.monotonic() + PATIENCE
        self._advance: Callable[[str], None] | None = None
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            task = self._bar.add_task("", total=self.count)
            self._advance = lambda text: self._bar.update(task, advance=1, description=text)
        return self

    def __call__(self, outcome: Outcome) -> None:
        self.done += 1
        self.words[outcome.status] += 1
        text = ", ".join(f"{count} {word}" for word, count in self.words.items() if count)
        if self._advance is not None:
            self._advance(text)
        elif not self.quiet and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.EVERY
            note(f"toolc: {self.done} of {self.count}: {text}")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
