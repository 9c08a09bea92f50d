"""Bundles of contents from a real worker: compiled once, found again, refused, late, and after its death."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler import Options, compile_request
from toolc.runtime.serving.outcomes import Held, Late, Outcomes, Refused, _opened
from toolc.runtime.serving.requests import Content, read_request
from toolc.runtime.serving.worker import Setup, Worker, one_at_a_time
from toolc.runtime.store.store import open_store


def content(name: str, **schema: Any) -> Content:
    parameters = {"type": "object", "properties": {"a": schema or {"type": "boolean"}}, "required": ["a"]}
    found = read_request(
        {"tools": [{"type": "function", "function": {"name": name, "parameters": parameters}}]}
    ).content
    assert found is not None
    return found


def run(store: Path | str, test: Callable[[Outcomes], Awaitable[None]], queue: int = 8, **setup: Any) -> None:
    usual = {"tokenizer": "builtin", "ends": (), "logits_width": None, "protocol": "hermes", "store_bytes": 1 << 30}

    async def whole() -> None:
        outcomes = Outcomes(Setup(**{**usual, "store": str(store), "seconds": 60.0, "jobs": 1, **setup}), queue)
        await outcomes.start()
        try:
            await test(outcomes)
        finally:
            await outcomes.close()

    asyncio.run(whole())


def test_a_content_is_compiled_once(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        one = content("one")
        held = await asyncio.gather(*[outcomes.obtain(one) for _ in range(20)])
        assert len(set(held)) == 1 and outcomes.told.compiled == 1
        assert [tool["name"] for tool in held[0].bundle.tools] == ["one"]
        assert Path(held[0].path) == tmp_path / f"{held[0].key}.toolc"
        assert held[0].bundle.vocab.digest == outcomes.vocab_digest
        assert held[0].bundle.meta["spec"]["digest"] == one.digest
        os.unlink(held[0].path)
        assert (await outcomes.obtain(one)).key == held[0].key and outcomes.told.compiled == 2

    run(tmp_path, test)

    async def again(outcomes: Outcomes) -> None:
        await outcomes.obtain(content("one"))
        assert (outcomes.told.compiled, outcomes.told.found) == (0, 1)

    run(tmp_path, again)
    assert not list(tmp_path.glob(".*.compiling"))


def test_bundles_that_were_compiled_before_are_found(tmp_path: Path) -> None:
    one = content("one")
    body = {"model": "any", "messages": [], **one.document}
    open_store(tmp_path).put(compile_request(body, "builtin", options=Options(protocol="hermes")).bundle)

    async def test(outcomes: Outcomes) -> None:
        await outcomes.obtain(one)
        assert (outcomes.told.compiled, outcomes.told.found) == (0, 1)

    run(tmp_path, test)


def test_refusals_stay(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        for _ in range(2):
            with pytest.raises(Refused) as caught:
                await outcomes.obtain(content("one", type="string", pattern=r"(a*)\1"))
            assert caught.value.place == "request#/tools/0/function/parameters/properties/a/pattern"
        assert outcomes.told.refused == 1
        await outcomes.obtain(content("two"))

    run(tmp_path, test)


def test_late(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        with pytest.raises(Late, match="not compiled yet"):
            await outcomes.obtain(content("one"), seconds=0)
        waiting = [asyncio.ensure_future(outcomes.obtain(content(f"tool{n}"))) for n in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Late, match="too many compiles wait"):
            await outcomes.obtain(content("last"))
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (await outcomes.obtain(content("one"))).bundle.tools

    run(tmp_path, test, queue=2)


def test_a_worker_that_dies_fails_one_content(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        process = outcomes._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        waiting = asyncio.ensure_future(outcomes.obtain(content("one")))
        await asyncio.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(Late, match="died"):
            await waiting
        assert (await outcomes.obtain(content("two"))).bundle.tools

    run(tmp_path, test)


def test_a_worker_that_dies_between_two_contents_fails_none(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        process = outcomes._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        assert (await outcomes.obtain(content("one"))).bundle.tools

    run(tmp_path, test)


def test_a_store_that_goes_away_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))
    worker = Worker(Setup("builtin", (), None, "hermes", str(tmp_path / "store"), 1 << 30, 60.0, 1))
    put = worker.store._put_vocab

    def gone(vocab: Any) -> None:
        put(vocab)
        (tmp_path / "store").rename(tmp_path / "away")

    monkeypatch.setattr(worker.store, "_put_vocab", gone)
    answer = worker.answer(content("one").document)
    assert answer.get("place") == str(tmp_path / "cache" / "store"), answer


def test_a_store_that_goes_away_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = 0

    def gone(place: str, key: str) -> Held:
        nonlocal times
        times += 1
        if times == 1:
            Path(place).rename(tmp_path / "away")
        return _opened(place, key)

    monkeypatch.setattr("toolc.runtime.serving.outcomes._opened", gone)

    async def test(outcomes: Outcomes) -> None:
        assert (await outcomes.obtain(content("one"))).bundle.tools
        assert (times, outcomes.told.refused, outcomes.told.late) == (2, 0, 0)

    run(tmp_path / "store", test)


def test_a_store_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))

    async def test(outcomes: Outcomes) -> None:
        held = await outcomes.obtain(content("one"))
        assert Path(held.path).parent == tmp_path / "cache" / "store"

    run(tmp_path / "file", test)


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    async def test(outcomes: Outcomes) -> None:
        raise AssertionError("it began")

    with pytest.raises(Refused, match="no such tokenizer"):
        run(tmp_path, test, tokenizer=str(tmp_path / "nothing"))


def test_one_at_a_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with one_at_a_time(store, "a"), one_at_a_time(store, "b"):
        assert len(list(tmp_path.glob(".*.compiling"))) == 2
    with one_at_a_time(store, "a"):
        pass
    assert not list(tmp_path.glob(".*.compiling"))


def test_a_bug_fails_one_content_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits for what cannot come, the log says what happened, and the next content is served."""
    name = "toolc.runtime.serving.outcomes._opened"

    def broken(place: str, key: str) -> Held:
        monkeypatch.setattr(name, _opened)
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(name, broken)

    async def test(outcomes: Outcomes) -> None:
        with pytest.raises(Late, match="cannot be had"):
            await asyncio.wait_for(outcomes.obtain(content("one")), 60)
        assert "ZeroDivisionError: a bug" in caplog.text
        with pytest.raises(Late, match="cannot be had"):
            await outcomes.obtain(content("one"))
        assert (await outcomes.obtain(content("two"))).bundle.tools

    run(tmp_path, test)
