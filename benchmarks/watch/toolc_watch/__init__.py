"""Count the CPU seconds that constraints take in every process of a vLLM: a general plugin for vllm_cpu.py.

Each process writes `<pid>.json` into $TOOLC_WATCH, by stage: calls and seconds of the thread that made them. A
coroutine is counted while it runs, and not while it waits. XGrammar compiles in threads of its own, which are not seen:
its compiles count for less than they cost.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

_REQUESTS = "toolc.runtime.serving"
STAGES = {
    "toolc read": (f"{_REQUESTS}.middleware", None, "_parsed"),
    "toolc gate": (f"{_REQUESTS}.gate", "Gate", "admit"),
    "toolc write": (f"{_REQUESTS}.middleware", None, "_replaced"),
    "toolc admit": ("toolc.runtime.adapters.vllm", "Gate", "admit"),
    "toolc update": ("toolc.runtime.adapters.vllm", "OnHost", "update_state"),
    "toolc apply": ("toolc.runtime.adapters.vllm", "OnHost", "apply"),
    "own admit": ("vllm.sampling_params", "SamplingParams", "_validate_structured_outputs"),
    "own compile": ("vllm.v1.structured_output", "StructuredOutputManager", "_create_grammar"),
    "own fill": ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_bitmask"),
    "own accept": ("vllm.v1.structured_output", "StructuredOutputManager", "accept_tokens"),
    "own apply": ("vllm.v1.worker.gpu_model_runner", None, "apply_grammar_bitmask"),
}
_sums: dict[str, list[float]] = {stage: [0, 0.0] for stage in STAGES}
_begun = False


def register() -> None:
    """The general plugin: stages are watched as soon as their modules are loaded."""
    global _begun
    if _begun or "TOOLC_WATCH" not in os.environ:
        return
    _begun = True
    threading.Thread(target=_run, daemon=True).start()


def _run() -> None:
    import sys

    path = Path(os.environ["TOOLC_WATCH"]) / f"{os.getpid()}.json"
    missing = dict(STAGES)
    while True:
        for stage, (module, owner, name) in list(missing.items()):
            if module in sys.modules:
                try:
                    place: Any = importlib.import_module(module)
                    place = place if owner is None else getattr(place, owner)
                    setattr(place, name, _watched(getattr(place, name), _sums[stage]))
                except AttributeError:  # the module is still being loaded
                    continue
                del missing[stage]
        times = time.process_time()
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"process": times, **_sums}))
        os.replace(new, path)
        time.sleep(0.25)


class _Steps:
    """A coroutine whose steps are counted."""

    def __init__(self, coroutine: Any, sums: list[float]) -> None:
        self._coroutine, self._sums = coroutine, sums

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, sent, failed = self._coroutine.__await__(), None, None
        while True:
            begun = time.thread_time()
            try:
                waited = steps.send(sent) if failed is None else steps.throw(failed)
            except StopIteration as stop:
                return stop.value
            finally:
                self._sums[1] += time.thread_time() - begun
            try:
                sent, failed = (yield waited), None
            except BaseException as error:  # is the coroutine's to handle, a cancellation too
                failed = error


def _watched(function: Any, sums: list[float]) -> Any:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def stepped(*arguments: Any, **named: Any) -> Any:
            sums[0] += 1
            return await _Steps(function(*arguments, **named), sums)

        return stepped

    @functools.wraps(function)
    def watched(*arguments: Any, **named: Any) -> Any:
        begun = time.thread_time()
        try:
            return function(*arguments, **named)
        finally:
            sums[1] += time.thread_time() - begun
            sums[0] += 1

    return watched
