"""The benchmarks of the device run through, on the CPU and small; what they measure is not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

SMALL = ["--layers", "1", "--hidden", "64", "--steps", "5"]


def test_model(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import model

    model.main([str(repository / "tools_specs" / "weather.json"), *SMALL, "--batch", "2", "--rounds", "1"])
    found = json.loads(capsys.readouterr().out)
    assert found["tokens_per_s_with"] > 0 and found["tokens_per_s_without"] > 0 and found["batch"] == 2


def test_gpu(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import gpu

    spec = str(repository / "tools_specs" / "weather.json")
    sizes = ["--batches", "1", "3", "--backends", "torch", "--model-batches", "2", "--repeat", "2"]
    gpu.main([spec, "--device", "cpu", *SMALL, *sizes])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("batch") for line in lines] == [None, 1, 3, 2]
    size = lines[0]["vocabulary"]
    assert lines[1]["bytes"] == 2 * size + 4 * -(-size // 32)


def test_gpu_beside_the_peers(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """toolc's part; the peers are not installed here."""
    from benchmarks import gpu_peers

    tokenizer = str(shared / "tokenizers" / "llama3.json")
    sizes = ["--batches", "1", "3", "--steps", "4", "--engines", "toolc"]
    gpu_peers.main(["--tokenizer", tokenizer, "--device", "cpu", *sizes])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("batch") for line in lines] == [None, 1, 3]
    assert all(0 < line["host_us"] <= line["step_us"] <= line["most_us"] for line in lines[1:])


def test_starts() -> None:
    from benchmarks import starts

    found = starts.measure(1)
    assert set(found) > {"toolc compile", "open and first mask"} and min(found.values()) > 0
