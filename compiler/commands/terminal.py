"""What the commands share: errors and exit codes, progress, JSON, sizes.

Leaves out   the commands.
Invariants   importing this loads no more than the standard library and click.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import logging
import os
import re
import signal
import sys
import threading
import time
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO

import click

from ..progress import LOG
from .restrictions import option_of
from .signals import ended_by, signal_met

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from ..errors import ToolcError

OK, NOT_ACCEPTED, USAGE, BAD_INPUT, BUDGET, BUNDLE, WARNED, SKIPPED = 0, 1, 2, 3, 4, 5, 6, 7
BUG, INTERRUPTED, NO_READER = 70, 130, 141
PATIENCE = 1.0
"""Seconds before progress is shown."""
DETAILS = 5.0
"""Seconds between two lines of what is compiled, where they go to a file."""
TICK = 0.1
"""Seconds between two pictures of a spinner."""

_ODD = re.compile(r"[^\n\t -~]")
"""Characters that `visible` looks at."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_drawing = threading.Lock()
"""Held while progress is drawn. A fork waits for it: the compiler forks beside the thread that draws."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_drawing.acquire, after_in_parent=_drawing.release, after_in_child=_drawing.release)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a command raises into text on stderr, JSON on stdout where it was asked for, and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        from toolc.runtime.errors import ToolcError

        as_json = bool(options.get("as_json"))
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: names of files can be any bytes
        try:
            command(*args, **options)
            end_as_asked()  # what it raised was lost
        except ToolcError as error:
            end_as_asked()
            if as_json:
                try:
                    refused = [{"tool": name, **one.as_dict()} for name, one in error.refused]
                    print_json({"ok": False, **error.as_dict(), **({"refused": refused} if refused else {})})
                except BrokenPipeError:
                    _forget(sys.stdout)
            note(error.titled)
            note_refused(error.refused)
            sys.exit(exit_code(error))
        except KeyboardInterrupt:
            _interrupted()
        except BrokenPipeError:
            _forget(sys.stdout)
            sys.exit(NO_READER)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            ended = ended_by(error)
            if isinstance(ended, SystemExit):
                raise ended from None
            if ended is not None:
                _interrupted()
            end_as_asked()
            if isinstance(error, OSError):
                end_without_room(error)
            note("".join(traceback.format_exception(error)))
            note(f"This is a bug in toolc ({type(error).__name__}); please report it with the above.")
            if as_json:
                print_json({"ok": False, "error": "bug", "message": f"{type(error).__name__}: {error}"})
            sys.exit(BUG)
        finally:
            signal_met()

    return run


def end_as_asked() -> None:
    """End the process if a signal was to do that: what it raised may be lost, or be another error by now."""
    number = signal_met()
    if number == signal.SIGINT:
        _interrupted()
    if number is not None:
        sys.exit(128 + number)


def _interrupted() -> NoReturn:
    note("interrupted")
    sys.exit(INTERRUPTED)


def end_without_room(error: OSError) -> None:
    """End the process if a disk is full; other errors are left."""
    if error.errno in _NO_ROOM:
        note(f"{error.filename or 'the output'}: {error.strerror}")
        _forget(sys.stdout)  # what is still to be written would fail again when the process ends
        sys.exit(BAD_INPUT)


def _forget(stream: TextIO) -> None:
    """Let nothing more be written to stdout or stderr: its reader has gone, or it is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_code(error: ToolcError) -> int:
    """The exit code of an error of ours."""
    from ..errors import BudgetError, BundleError, DecodeError, ReportError

    if isinstance(error, BudgetError):
        return BUDGET
    if isinstance(error, ReportError):
        return WARNED
    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_ROOM:
        return BAD_INPUT
    return BUNDLE if isinstance(error, (BundleError, DecodeError)) else BAD_INPUT


def refuse_usage(message: str) -> NoReturn:
    """End with a usage error."""
    raise click.UsageError(visible(message), click.get_current_context(silent=True))


def standard_input() -> BinaryIO:
    """The bytes of stdin."""
    if sys.stdin is None:
        refuse_usage("standard input is closed")
    return sys.stdin.buffer


def print_json(value: dict[str, Any]) -> None:
    """The one JSON object of --json."""
    click.echo(json_text(value, getattr(sys.stdout, "encoding", None) or "utf-8"))


def json_text(value: dict[str, Any], encoding: str = "utf-8", indent: int | None = None) -> str:
    """JSON; escaped where the encoding cannot write it, as half of a surrogate pair, which names of files may have."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def note(text: str) -> None:
    """Text for people, on stderr. That it cannot be written there changes no exit code."""
    try:
        click.echo(visible(text), err=True)
    except OSError:
        _forget(sys.stderr)


MOST_REFUSALS = 50
"""Rows of the table of refusals; ``--json`` lists all."""


def note_refused(refused: Sequence[tuple[str, ToolcError]]) -> None:
    """A table of what is refused of a spec, one row for a reason at a place: the tools, the place, the reason."""
    if len(refused) < 2:
        return
    rows: dict[tuple[str, str], list[str]] = {}
    for name, error in refused:
        why = str(error).partition("\n")[2] if error.place else str(error)
        rows.setdefault((error.place or "no place", " ".join(why.split())), []).append(name or "a tool")
    note(f"toolc: {counted(len(refused), 'tool')} refused, for {counted(len(rows), 'reason')}:")
    for (place, why), names in list(rows.items())[:MOST_REFUSALS]:
        note(f"  {listed(names, 3)}\n    at {place}\n    {why}")
    if len(rows) > MOST_REFUSALS:
        note(f"  and {len(rows) - MOST_REFUSALS} more reasons; --json lists all")


def left_out(one: dict[str, Any]) -> str:
    """A tool that was left out of a bundle, with the place and the reason, on one line."""
    from ..errors import ToolcError

    error = ToolcError(**{key: one[key] for key in ("message", "place", "found", "expected", "hint")})
    return f"{one['tool'] or 'a tool'}, {' '.join(str(error).split())}"


def note_missing_ends(missing: list[str], protocol: str, tokenizer: str = "") -> None:
    """Say which of a protocol's ends of turn end none, as a model that writes one would run on."""
    if missing:
        where = f" of {tokenizer}" if tokenizer else ""
        note(
            f"toolc: {', '.join(missing)} ends a turn in {protocol}, but not in the files{where}; masks never allow it "
            "there. Name all that end a turn with --eos"
        )


def note_missing_marks(missing: list[str], protocol: str, tokenizer: str = "") -> None:
    """Say which marks of a protocol are text for a tokenizer: its model was hardly trained on them."""
    if missing:
        where = tokenizer or "this tokenizer"
        note(
            f"toolc: warning: {' '.join(missing)} of {protocol}: no tokens of {where}, so they are written as text. "
            "Is it the protocol of this model? With --protocol auto its chat template says"
        )


def visible(text: str) -> str:
    """Text that may be a stranger's, with escapes for what steers a terminal or hides there.

    That is ``\\x1b`` or ``\\u202e``: of control characters, but for ends of lines and tabs, and of format characters.
    """
    return _ODD.sub(lambda odd: _escaped(odd[0]) if unicodedata.category(odd[0]) in ("Cc", "Cf") else odd[0], text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def console() -> Console:
    """For tables on stdout; nothing in them is read as markup or highlighted, and all of it is `visible`."""
    from rich.console import Console

    class Ours(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(visible(text), **more)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with the code 1

    return Ours(markup=False, highlight=False, emoji=False, soft_wrap=False)


def facts(rows: list[tuple[str, str]]) -> Table:
    """A table of names and values."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def listed(names: list[str], most: int = 12) -> str:
    """Names in one line, cut after ``most``."""
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "") or "none"


def restrictions(names: list[str], most: int = 20) -> str:
    """Declared restrictions in one line, each with its option if it has one."""
    options = {name: option_of(name) for name in names}
    return listed([f"{name} ({option})" if option else name for name, option in options.items()], most)


def many_keys(places: list[str], most: int = 20) -> str:
    """What became of objects with more keys than any order has room for, with their places."""
    if len(places) == 1:
        return f"1 object has more keys than any order has room for; its keys stand in declared order: {places[0]}"
    said = f"{len(places):,} objects have more keys than any order has room for; their keys stand in declared order: "
    return said + listed(places, most)


_FIGURES = (
    ("states", "states"),
    ("stack_symbols", "stack symbols"),
    ("profiles", "exit profiles"),
    ("rows", "rows"),
    ("dense_rows", "of them dense"),
)
_LIMITS = (("max_chain", "longest chain"), ("capacity", "deepest stack"))


def figures(counts: dict[str, int]) -> str:
    """The counts of a bundle that say something to a person."""
    out = [f"{counts[name]:,} {words}" for name, words in _FIGURES if name in counts]
    out += [f"{words} {counts[name]:,}" for name, words in _LIMITS if name in counts]
    return ", ".join(out)


def counted(count: int, noun: str) -> str:
    """A number of things, of which one has no s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 10_000:
        return f"{count:,} bytes"
    return f"{count / 1024:,.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):,.1f} MiB"


class _Details(logging.Handler):
    """Gives what the compiler tells of tools and parts to the progress of the process that shows it."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show, self._process = show, os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() == self._process:
            self._show(record.getMessage())


class Progress:
    """Shows the stage on stderr once the work has taken a second; a terminal gets a spinner, a file a line a stage.

    The tool or part that is compiled stands beside it; in a file, every `DETAILS` seconds.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._next = time.monotonic() + DETAILS
        self._details = _Details(self._detail)
        self._level = LOG.level
        self.stage = "starting"
        self._live: Live | None = None
        self._shown = ""
        self._over = threading.Event()

    def __enter__(self) -> Progress:
        if not self.quiet:
            thread = threading.Thread(target=self._follow, daemon=True)
            thread.fork_waits = True  # type: ignore[attr-defined]  # see link/workers.py
            thread.start()
            LOG.addHandler(self._details)
            LOG.setLevel(logging.INFO)
        return self

    def _detail(self, words: str) -> None:
        with _drawing:
            if self._live is not None:
                self.stage = words
            elif self._shown and time.monotonic() >= self._next:
                self._next = time.monotonic() + DETAILS
                note(f"toolc: {words} …")

    def __call__(self, stage: str) -> None:
        with _drawing:
            self.stage = stage
            if self._shown:
                self._draw()

    def _follow(self) -> None:
        delay = PATIENCE
        while not self._over.wait(delay):
            with _drawing:
                if not self._over.is_set():
                    self._draw()
            if self._live is None:
                return
            delay = TICK

    def _draw(self) -> None:
        new, self._shown = self.stage != self._shown, self.stage
        if not sys.stderr.isatty():
            if new:
                note(f"toolc: {self.stage} …")
            return
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        if self._live is None:
            self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
            self._live.start()
        if new:
            self._live.update(Spinner("dots", text=self.stage, style="status.spinner"))
        self._live.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if not self.quiet:
            LOG.removeHandler(self._details)
            LOG.setLevel(self._level)
        with _drawing:
            if self._live is not None:
                self._live.stop()
