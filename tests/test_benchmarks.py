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


def test_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model with random weights answers, goes on where it was, and its lines become tables."""
    from benchmarks import answers, answers_tables

    small_checkpoint(tmp_path)
    data, out = tmp_path / "data", tmp_path / "out.jsonl"
    (data / "bfcl").mkdir(parents=True)
    (data / "papers" / "funcqa").mkdir(parents=True)
    side = {"type": "dict", "properties": {"side": {"type": "integer"}}, "required": ["side"]}
    row = {"id": "one", "question": [[{"role": "user", "content": "The area of a square with side 2?"}]]}
    for name in ("simple_python", "multiple"):
        functions = [{"name": "area", "description": "Area.", "parameters": side}]
        (data / "bfcl" / f"{name}.jsonl").write_text(json.dumps({**row, "id": name, "function": functions}))
        truth = {"id": name, "ground_truth": [{"area": {"side": [2]}}]}
        (data / "bfcl" / f"{name}_answers.jsonl").write_text(json.dumps(truth))
    calls = ["<add>(1.5, 2)=3.5", "<add>(1, 2, 3)=6", "<sqrt>(4)=2"]
    rows = [{"question": "How many?", "func": call} for call in calls]
    (data / "papers" / "funcqa" / "funcqa_oh.json").write_text(json.dumps(rows))

    where = ["--model", str(tmp_path), "--data", str(data), "--out", str(out), "--most", "70"]
    answers.main([*where, "--arms", "free,spaced", "--count", "2"])
    answers.main([*where, "--arms", "free,spaced,spaced/canonical,8/any", "--count", "4"])
    answers.main([*where, "--arms", "spaced", "--count", "1", "--alone"])
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 4 * 4 + 1 and [line["alone"] for line in lines].count(True) == 1
    masked = [line for line in lines if line["arm"] != "free"]
    assert all(0 < line["forced"] < line["tokens"] == len(line["taken"]) for line in masked)
    assert all(0 <= blanks <= taken + 0.001 <= 1.001 for line in masked for _, taken, blanks, _ in line["taken"])
    of_one = {line["arm"]: line for line in lines if line["id"] == "simple_python" and not line["alone"]}
    assert of_one["spaced/canonical"]["text"].startswith('{"name": "area", "arguments": {"side": ')
    capsys.readouterr()
    answers_tables.main([str(out), "--lost", "2"])
    found = capsys.readouterr().out
    assert "4 questions" in found and "| 8/any |" in found and "| name |" in found


def test_questions_and_their_judge(shared: Path) -> None:
    from benchmarks.questions import Question, questions_of

    asked = questions_of(shared / "data")
    assert len({one.id for one in asked}) == len(asked) > 400
    assert sum(one.id.startswith("funcqa") for one in asked[:200]) == 50
    for one in asked:
        first = {name: next((v for v in values if v != ""), "") for name, values in one.allowed.items()}
        right = {"name": one.name, "arguments": {name: value for name, value in first.items() if value != ""}}
        if not any(isinstance(value, dict) or "[{" in str(value) for value in first.values()):
            assert one.judge(right) == (True, True), one
        assert one.judge({"name": "x", "arguments": {}}) == (False, False)
        assert one.judge({**right, "arguments": {**right["arguments"], "no": 1}}) == (True, False)
    either = Question("", "", [], "add", {"x": [1.0], "y": [2.0]}, swaps=True)
    assert [either.judge({"name": "add", "arguments": {"x": x, "y": y}})[1] for x, y in ((1, 2), (2, 1), (2, 2))] == [
        True,
        True,
        False,
    ]
    assert not either.judge({"name": "add", "arguments": {"x": True, "y": 2}})[1]


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("", "start"),
        ("{", "structure"),
        ('{"na', "key"),
        ('{"name"', "structure"),
        ('{"name": "f', "name"),
        ('{"name": "f\\"', "name"),
        ('{"name": "f", "arguments": {"name', "key"),
        ('{"name": "f", "arguments": {"name": "x', "string"),
        ('{"arguments": {"a": [-1', "number"),
        ('{"arguments": {"a": [-1, "', "string"),
        ('{"arguments": {"a": [1]', "structure"),
        ('{"arguments": {"a": 1}, "name": "', "name"),
        ('{"arguments": {"a": tr', "structure"),
        ('{"arguments": {"a": 1}}', "end"),
    ],
)
def test_regions(text: str, region: str) -> None:
    from benchmarks.regions import Place

    place = Place()
    place.feed(text.encode())
    assert place.region == region


def byte_tokenizer(path: Path) -> str:
    """Write a tokenizer whose tokens are the bytes and an end of turn; returns the path."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, []))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    tokens.add_special_tokens(["</s>"])
    tokens.save(str(path))
    return str(path)


def test_maskbench_goes_on_where_an_engine_died(tmp_path: Path) -> None:
    from benchmarks import maskbench

    child = maskbench.Child("toolc", byte_tokenizer(tmp_path / "tokenizer.json"))
    child._process.kill()
    child._process.wait()
    assert child.ask({"schema": {"type": "object"}, "tests": []}, 30) is None


def test_many_tools_is_timed_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import many_tools

    path = byte_tokenizer(tmp_path / "tokenizer.json")
    many_tools.main(["toolc", "--tokenizer", path, "--sizes", "1,2", "--repeat", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| tools | toolc, s |" and [float(line.split("|")[2]) > 0 for line in lines[2:]] == [True, True]
    many_tools.main(["toolc", "--tokenizer", str(tmp_path / "none.json"), "--sizes", "1", "--repeat", "1"])
    assert "failed" in capsys.readouterr().out


def test_maskbench_counts_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three cases one passes, one says of an instance what is not so, and one cannot be compiled."""
    from benchmarks import maskbench

    tokenizer = byte_tokenizer(tmp_path / "tokenizer.json")
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
    maskbench.main(["toolc", "--cases", str(lines), "--tokenizer", tokenizer, "--out", str(out)])
    refused, passed, failed = [json.loads(line) for line in out.read_text().splitlines()]
    assert refused["id"] == "not" and "type" in refused["refused"]
    assert [passed[key] for key in ("over", "over_order", "under")] == [0, 0, 0] and len(passed["steps"]) > 10
    assert [failed[key] for key in ("over", "over_order", "under")] == [1, 1, 1]
    table = capsys.readouterr().out
    assert "| cases passed | 33.3% |" in table and "| schemas refused | 1 |" in table
