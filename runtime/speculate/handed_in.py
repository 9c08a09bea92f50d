"""Read what clients hand in to a tool cache: outputs of calls, entry by entry.

    [{"name": …, "params"?: {…}, "output": any JSON, "keep_alive"?: seconds}]

An entry without ``params`` is the output of any call of its tool. An output that is not text is kept as its JSON text,
as tools' results are. An entry that is refused is named by its number, and the others are kept.

Leaves out   keeping: see outputs.py. HTTP: see server.py and adapters/vllm_outputs.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .errors import SpeculateError


class HandedIn(NamedTuple):
    """An entry.

    Attributes:
        number: its place in the request.
        name: of the tool.
        arguments: of the call; None: of any call of the tool.
        output: text.
        keep_alive_s: seconds; None: as long as the cache keeps entries.
    """

    number: int
    name: str
    arguments: dict[str, Any] | None
    output: str
    keep_alive_s: float | None


@dataclass(frozen=True)
class Bad:
    """An entry that is refused.

    Attributes:
        number: its place in the request.
        message: why.
        param: the place in the request that is wrong: ``2/output``.
    """

    number: int
    message: str
    param: str


def read_entries(listed: Sequence[Any]) -> tuple[list[HandedIn], list[Bad]]:
    """The entries of a request, and those that are none."""
    entries, bad = [], []
    for number, one in enumerate(listed):
        read = _entry(one, number)
        if isinstance(read, Bad):
            bad.append(read)
        else:
            entries.append(read)
    return entries, bad


def told(taken: Sequence[int], bad: Sequence[Bad]) -> dict[str, Any]:
    """What the answer says besides its first error: how many were kept, which, and what is wrong with the others."""
    refused = [{"entry": one.number, "message": one.message, "param": one.param} for one in bad]
    return {"cached": len(taken), "taken": list(taken), "refused": refused}


def _entry(one: Any, number: int) -> HandedIn | Bad:
    if not isinstance(one, dict):
        return Bad(number, "an entry is an object", f"{number}")
    unknown = set(one) - {"name", "params", "output", "keep_alive"}
    if unknown:
        return Bad(number, f"an entry has no member {sorted(unknown)[0]!r}", f"{number}")
    name, params, seconds = (one.get(key) for key in ("name", "params", "keep_alive"))
    if not isinstance(name, str):
        return Bad(number, "name: expected the name of a tool", f"{number}/name")
    if params is not None and not isinstance(params, dict):
        return Bad(number, "params: expected an object", f"{number}/params")
    if "output" not in one:
        return Bad(number, "output: expected text, or any JSON", f"{number}/output")
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and seconds >= 0):
        return Bad(number, "keep_alive: expected seconds, 0 or more", f"{number}/keep_alive")
    try:
        output = as_text(one["output"])
    except SpeculateError as error:
        return Bad(number, str(error), f"{number}/output")
    return HandedIn(number, name, params, output, seconds)


def as_text(value: Any) -> str:
    """A tool's result as the text of its message: text as it is, anything else as JSON.

    Raises:
        SpeculateError: it is not JSON; NaN and infinity are not.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpeculateError("a tool returned what is no JSON", found=type(value).__name__) from error
