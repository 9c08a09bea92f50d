"""Parts made by several processes: the bundle, or the error, is that of one process, and nobody is left behind.

A process that has threads is not forked, and the one that runs the tests may have some, so each body runs in its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler import Budget, Options, source_key
from toolc.compiler.link import cache, link
from toolc.compiler.link import tool_groups as groups
from toolc.compiler.pipeline import compile_spec
from toolc.compiler.schema import cached_rules as pieces
from toolc.compiler.specs import read_spec
from toolc.runtime.errors import ToolcError

from .test_link import SCHEMAS, tool, vocab

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="nothing is forked on this system")

CYRILLIC = {"type": "object", "properties": {"x": {"pattern": "^[а-я]{2}$"}}, "additionalProperties": False}
MANY = [
    {"type": "object", "properties": {f"p{n}": {"maxLength": n}, "q": {"type": "integer"}}, "required": [f"p{n}"]}
    | ({"additionalProperties": False} if n % 2 else {})
    for n in range(5, 11)
]
SPEC = [tool(f"tool_{n}", schema) for n, schema in enumerate([*SCHEMAS, *MANY])]


def alone(body: Callable[[], None], folder: Path) -> None:
    """Run a body in a process, and a group of processes, of its own."""
    command = f"from {__name__} import {body.__name__} as body; body()"
    environment = {**os.environ, "TOOLC_CACHE": str(folder)}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", command], env=environment, cwd=root, capture_output=True, text=True, timeout=600,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def eager() -> list[int]:
    """Workers are worth it from now on; returns what receives the number of each."""
    from toolc.compiler.link import workers

    forked: list[int] = []
    fork = workers._Pool.fork

    def counted(pool: workers._Pool) -> bool:
        done = fork(pool)
        forked.append(pool.workers[-1].pid)
        return done

    workers._Pool.fork = counted  # type: ignore[method-assign]
    link.WORTH = link.ALONE = 0
    workers.START = 0.0
    return forked


def digest(spec: Any, jobs: int | None, known: Any = (), **options: Any) -> tuple[Any, ...]:
    """What a new process gives that has a cache of the parts of ``known``."""
    cache.forget()
    pieces.forget()
    shutil.rmtree(Path(os.environ["TOOLC_CACHE"]) / "parts", ignore_errors=True)
    options = {"protocol": "hermes", **options}
    if known:
        compile_spec(read_spec(known), vocab(), options=Options(**options, jobs=1))
    made = compile_spec(read_spec(spec), vocab(), options=Options(**options, jobs=jobs))
    nobody_is_left()
    return made.bundle.digest, {key: value for key, value in made.report.items() if key != "seconds"}


def nobody_is_left() -> None:
    """No process, and no file that is half written."""
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not list(Path(os.environ["TOOLC_CACHE"]).rglob("*.tmp"))


def parts() -> dict[str, bytes]:
    """The files of parts."""
    return {path.name: path.read_bytes() for path in Path(os.environ["TOOLC_CACHE"]).glob("parts/*")}


def refused(spec: Any, jobs: int, **options: Any) -> dict[str, Any]:
    with pytest.raises(ToolcError) as caught:
        digest(spec, jobs, **options)
    nobody_is_left()
    return caught.value.as_dict()


def in_workers(act: Callable[[], None], number: int) -> None:
    """Do something where a worker is about to make one of `MANY`."""
    parent, make = os.getpid(), link._Linker._unit

    def acting(linker: link._Linker, unit: Any) -> Any:
        if os.getpid() != parent and unit.origin.endswith(f"/{len(SCHEMAS) + number}/function/parameters"):
            act()
        return make(linker, unit)

    link._Linker._unit = acting  # type: ignore[method-assign]


def equal() -> None:
    forked = eager()
    shared = {"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}, SCHEMAS[1]]}}}
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (SPEC, (), {}),
        (SPEC, SPEC[::2], {}),
        (SPEC, SPEC, {}),
        ([*SPEC, tool("fine", CYRILLIC)], (), {}),  # after the others it turns out that all tell every byte apart
        (SPEC, (), {"protocol": "qwen3_coder"}),  # tails
        (SPEC, (), {"protocol": "deepseek_v31", "named": False, "whitespace": "compact"}),
        (SPEC, (), {"many": 4}),  # groups
        ([*SPEC[:7], tool("shared", shared), *SPEC[7:]], SPEC[:3], {"many": 4}),  # one of which is none
    ]
    groups._FEWEST = groups._ONE_IN = 2
    for spec, known, options in cases:
        grouped = "many" in options
        groups.MANY = options.pop("many", groups.MANY)
        one, files = digest(spec, 1, known, **options), parts()
        assert not forked
        for jobs in (2, 3):
            assert digest(spec, jobs, known, **options) == one, (jobs, options)
            assert files.items() <= parts().items()  # where all was begun anew, others had more time before
            assert bool(forked) == (known is not SPEC) and (grouped or len(forked) % jobs == 0)
            forked.clear()


def errors() -> None:
    forked, many = eager(), groups.MANY
    wide = tool("wide", {"type": "object", "properties": {"x": {"pattern": "^(a|b)*a(a|b){9}$"}}, "required": ["x"]})
    wider = tool("wider", {"type": "object", "properties": {"y": {"pattern": "^(a|c)*a(a|c){9}$"}}})
    for spec in ([*SPEC, wide, wider], [*SPEC[:3], wider, *SPEC[3:], wide, tool("fine", CYRILLIC)]):
        told = [refused(spec, jobs, budget=Budget(pattern_states=100)) for jobs in (1, 2, 3)]
        assert told[0] == told[1] == told[2] and told[0]["error"] == "BudgetError", told
        groups.MANY = 8
        assert refused(spec, 2, budget=Budget(pattern_states=100)) == told[0]
        groups.MANY = many
    assert "/3/function/parameters/properties/y" in told[0]["place"] and "--max-pattern-states" in told[0]["hint"]
    assert forked
    assert refused(SPEC, 2, budget=Budget(seconds=1e-9))["error"] == "BudgetError"


def skipped() -> None:
    """Where tools that fail are left out, workers make those behind them, too, and none is made again to say why."""
    wide = [tool(f"wide_{k}", {"properties": {k: {"pattern": "^(a|b)*a(a|b){9}$"}}, "required": [k]}) for k in "xy"]
    spec = [*SPEC[:3], wide[0], *SPEC[3:], wide[1], tool("fine", CYRILLIC)]
    options: dict[str, Any] = {"budget": Budget(pattern_states=100), "skip": True}
    one = digest(spec, 1, **options)
    assert [each["tool"] for each in one[1]["skipped"]] == ["wide_x", "wide_y"]
    from toolc.compiler.link import workers

    forked = eager()
    parent, make, made = os.getpid(), link._Linker._unit, list[str]()

    def noting(linker: link._Linker, unit: Any) -> Any:
        if os.getpid() == parent:
            made.append(unit.digest.hex())
        return make(linker, unit)

    link._Linker._unit = noting  # type: ignore[method-assign]
    assert digest(spec, 2, **options) == one and forked
    assert len(made) == 1, made
    groups.MANY, groups._FEWEST, groups._ONE_IN = 4, 2, 2
    options["budget"] = Budget(pattern_states=100)
    one = digest(spec, 1, **options)
    handed: list[bytes] = []
    hand = workers._Pool._hand

    def noted(pool: workers._Pool, worker: workers._Worker) -> None:
        hand(pool, worker)
        if worker.number >= 0:
            handed.append(pool.units[worker.number].digest)

    workers._Pool._hand = noted  # type: ignore[method-assign]
    assert digest(spec, 2, **options) == one
    assert len(handed) == len(set(handed)) > 2


def lost() -> None:
    one = digest(SPEC, 1)
    forked = eager()
    in_workers(lambda: os.kill(os.getpid(), signal.SIGKILL), 2)
    assert digest(SPEC, 2) == one and forked
    in_workers(lambda: os.kill(os.getpid(), signal.SIGKILL), 0)  # so no worker is left
    assert digest(SPEC, 2) == one and forked


def bugs() -> None:
    one = digest(SPEC, 1)
    forked = eager()
    in_workers(lambda: [].pop(), 1)
    assert digest(SPEC, 2) == one and forked
    link._Linker._unit = lambda *_: {}["a bug"]  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyError, match="a bug"):
        digest(SPEC, 2)
    nobody_is_left()


def interrupted() -> None:
    forked = eager()
    in_workers(lambda: os.killpg(0, signal.SIGINT), 2)
    with pytest.raises(KeyboardInterrupt):
        digest(SPEC, 2)
    assert forked
    nobody_is_left()


def threaded() -> None:
    one = digest(SPEC, 1)
    forked, over = eager(), threading.Event()
    for waits in (False, True):
        thread = threading.Thread(target=over.wait, daemon=True)
        thread.fork_waits = waits  # type: ignore[attr-defined]
        thread.start()
        assert digest(SPEC, 2) == one and bool(forked) == waits
        over.set()
        thread.join()
        over.clear()


def unneeded() -> None:
    """A small compile does not even load this."""
    digest(SPEC[:2], None)
    assert "toolc.compiler.link.workers" not in sys.modules


def reads_once() -> None:
    """The tokenizer is read before processes are forked, each of which would, though here nothing is to be asked."""
    from toolc.compiler.vocab import encode

    spec = read_spec(SPEC[:4])
    options = {"protocol": "hermes"}
    compile_spec(spec, options=Options(**options, jobs=1))  # which keeps all texts that it asks
    forked = eager()
    cache.forget()
    shutil.rmtree(Path(os.environ["TOOLC_CACHE"]) / "parts")
    encode._encode_of.cache_clear()
    compile_spec(spec, options=Options(**options, jobs=2))
    one = encode.encoder("builtin")
    assert forked and one is not None and one._tokenizer is not None and one._kept


@pytest.mark.parametrize("body", [equal, errors, skipped, lost, bugs, interrupted, threaded, unneeded, reads_once])
def test_workers(body: Callable[[], None], tmp_path: Path) -> None:
    alone(body, tmp_path)


def test_the_number_of_workers_is_no_part_of_a_key() -> None:
    spec = read_spec(json.dumps(SPEC))
    assert source_key(spec, vocab(), Options(jobs=3)) == source_key(spec, vocab(), Options())
