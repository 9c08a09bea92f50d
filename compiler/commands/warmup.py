"""``toolc warmup``: the kernels of toolc compiled before they are needed, on all cores.

Leaves out   how (../warmup.py).
"""

from __future__ import annotations

import time
from pathlib import Path

from ..errors import SetupError
from ..options import cores
from ..warmup import is_cold, listed, ship, warm_up, why_not_shipped
from .terminal import Progress, note, print_json

_STAGE = "compiling toolc's own kernels{}, once on this machine"


def run(jobs: int | None, as_json: bool, ship_into: str | None = None) -> None:
    """Compile them all, or find that they are there.

    Args:
        jobs: how many processes.
        as_json: print a JSON object.
        ship_into: compile them for every processor of this kind, into this folder.
    """
    begin = time.perf_counter()
    with Progress(quiet=as_json) as progress:
        progress(_STAGE.format(why_not_shipped()))
        failed = warm_up(jobs or cores()) if ship_into is None else ship(jobs or cores(), Path(ship_into))
    if failed:
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise SetupError(
            "not all kernels could be compiled",
            found=failed[0] + more,
            hint="the others are ready; these are compiled when they are called, or fail then",
        )
    seconds = time.perf_counter() - begin
    if as_json:
        print_json({"ok": True, "kernels": len(listed()), "seconds": round(seconds, 3)})
    else:
        note(f"toolc: {len(listed())} kernels are ready, after {seconds:.1f} s")


def warm(progress: Progress, jobs: int | None = None, later: bool = False) -> None:
    """Before a command that compiles, where numba has kept no kernels yet. What fails here is compiled, or fails, when
    it is called.

    Args:
        progress: told what is done.
        jobs: how many processes.
        later: also what a small spec does not call.
    """
    if is_cold():
        progress(_STAGE.format(why_not_shipped()))
        warm_up(jobs or cores(), later)
