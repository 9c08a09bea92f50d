"""The benchmarks of the device run through, on the CPU and small; what they measure is not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
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


def small_checkpoint(folder: Path) -> None:
    """A model with random weights that reads bytes, with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from benchmarks.model import llama

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, []))
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '<end>' }}{% endfor %}"
    PreTrainedTokenizerFast(
        tokenizer_object=tokens, eos_token="<end>", pad_token="<end>", chat_template=template
    ).save_pretrained(folder)
    model = llama(len(words) + 1, 1, 64, 1024, torch.device("cpu"), torch.float32)
    model.generation_config.eos_token_id = model.config.eos_token_id = len(words)
    model.save_pretrained(folder)


def test_blanks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import blanks

    small_checkpoint(tmp_path)
    calls = ["<add>(1.5, 2)=3.5", "<add>(1, 2, 3)=6", "-<log>(2, 3)=1", "<sqrt>(4)=2", "<power>(2,8)=256"]
    rows = [{"question": "How many?", "answer": 0, "func": call} for call in calls]
    (tmp_path / "funcqa_oh.json").write_text(json.dumps(rows))
    asked = blanks.questions_of(tmp_path, 9)
    assert [one[1:] for one in asked] == [("add", (1.5, 2.0)), ("power", (2.0, 8.0))]
    swapped = {"x": 2, "y": 1.5}, {"x": 8, "y": 2}
    assert [one.is_right({"name": one.name, "arguments": x}) for one, x in zip(asked, swapped, strict=True)] == [
        True,
        False,
    ]
    blanks.main(["--model", str(tmp_path), "--data", str(tmp_path), "--settings", "spaced,2", "--most", "90"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["whitespace"] for line in lines] == ["spaced", 2]
    assert lines[0]["trailing"] == 0 and lines[0]["blanks"] <= 6 and lines[0]["states"] < lines[1]["states"]
    assert all(0 < line["forced_percent"] < 100 and line["questions"] == 2 for line in lines)


def test_maskbench_counts_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three cases one passes, one says of an instance what is not so, and one cannot be compiled."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    from benchmarks import maskbench

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, []))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    tokens.add_special_tokens(["</s>"])
    tokens.save(str(tmp_path / "tokenizer.json"))
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "additionalProperties": False}
    right = [{"data": {"a": 1, "b": 2}, "valid": True}, {"data": {"a": "1"}, "valid": False}]
    wrong = [
        {"data": {"a": 1}, "valid": False},
        {"data": {"c": 1}, "valid": True},
        {"data": {"b": 1, "a": 2}, "valid": True, "order": True},
    ]
    folder = tmp_path / "cases"
    folder.mkdir()
    for name, case in (("right", (schema, right)), ("wrong", (schema, wrong)), ("not", ({"type": "nothing"}, right))):
        (folder / f"{name}.json").write_text(json.dumps({"schema": {"type": "object"} | case[0], "tests": case[1]}))
    lines = tmp_path / "cases.jsonl"
    lines.write_text("".join(json.dumps(case) + "\n" for case in maskbench.read_cases(folder)))
    out = tmp_path / "out.jsonl"
    maskbench.main(["toolc", "--cases", str(lines), "--tokenizer", str(tmp_path / "tokenizer.json"), "--out", str(out)])
    refused, passed, failed = [json.loads(line) for line in out.read_text().splitlines()]
    assert refused["id"] == "not" and "type" in refused["refused"]
    assert [passed[key] for key in ("over", "over_order", "under")] == [0, 0, 0] and len(passed["steps"]) > 10
    assert [failed[key] for key in ("over", "over_order", "under")] == [1, 1, 1]
    table = capsys.readouterr().out
    assert "| cases passed | 33.3% |" in table and "| schemas refused | 1 |" in table
