"""SIGTERM and SIGINT end a command as exceptions do: what lies beside an output is taken away, and none is lost.

Leaves out   exit codes and what is said (terminal.py).
Invariants   a signal is `_asked` from its handler on until `signal_met`; only between the two does its timer run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

AGAIN = 0.02
"""Seconds until a signal comes again that could not end the process."""
_asked: list[int] = []
"""The signal that is to end this process, until the command is over."""


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT end this process as exceptions do, so that files beside an output are taken away.

    What is raised where C calls back is lost, which Python tells its hook for that: then the signal comes again. LLVM,
    which calls back for every kernel that it loads, and finalizers do not bear it: there nothing is raised yet.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    sys.unraisablehook = _again


def _end(number: int, frame: FrameType | None) -> None:
    _asked[:] = [number]
    while frame is not None and hasattr(signal, "setitimer"):
        if frame.f_code.co_name == "__del__" or frame.f_code.co_name.startswith("_raw_object_cache_"):
            _come_again(number)
            return
        frame = frame.f_back
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _again(lost: sys.UnraisableHookArgs) -> None:
    """Raise a signal's exception once more, somewhat later; other errors are said as ever."""
    if not (_asked and isinstance(lost.exc_value, (KeyboardInterrupt, SystemExit)) and hasattr(signal, "setitimer")):
        sys.__unraisablehook__(lost)
        return
    _come_again(_asked[0])


def _come_again(number: int) -> None:
    signal.signal(signal.SIGALRM, lambda _, frame: _end(number, frame))
    signal.setitimer(signal.ITIMER_REAL, AGAIN)


def signal_met() -> int | None:
    """The signal that was to end this process, which does not come again then; None if there was none."""
    if not _asked:
        return None
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    return _asked.pop()


def end_at_once() -> None:
    """Let signals end this process with no exception: there is nothing left to take away.

    If one ended the command, end at once: what it met half made, as LLVM's objects, may not bear to be taken apart.
    """
    signal_met()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
    ended = sys.exc_info()[1]
    if isinstance(ended, SystemExit) and ended.code in (128 + signal.SIGTERM, 128 + signal.SIGINT):
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(int(ended.code))


def ended_by(error: BaseException | None) -> BaseException | None:
    """The Ctrl-C or the SIGTERM behind an error: kernels turn it into a SystemError, imports into a RuntimeError."""
    while error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
        error = error.__cause__ or error.__context__
    return error
