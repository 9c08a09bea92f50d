"""The experiments of benchmarks/tooldec: what is counted as a fault, what a table says, and a run over tiny data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.tooldec import __main__ as command  # noqa: E402
from benchmarks.tooldec import funcqa, kamel, restbench, tables, tooleval  # noqa: E402
from benchmarks.tooldec.decode import Model, Row, decode  # noqa: E402
from benchmarks.tooldec.llama import Texts  # noqa: E402

from .test_benchmarks import small_checkpoint  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("model")
    small_checkpoint(folder)
    return Model(folder)


def test_texts_behind_one_prompt(model: Model) -> None:
    """The same logits as of transformers, of texts of two lengths, also where one is left out."""
    prompt, long, short = list(range(40)), [7, 9, 11, 13], [5]
    with torch.inference_mode():
        texts = Texts(model.llama, model.llama.read(prompt), torch.tensor([0, 3]))
        first = texts.step(torch.tensor([long, [0, 0, 0, *short]]))
        second = texts.step(torch.tensor([[3], [4]]))
        texts.keep([1])
        third = texts.step(torch.tensor([[6]]))
        for found, text in (
            (first[0], long), (first[1], short), (second[0], [*long, 3]), (second[1], [*short, 4]),
            (third[0], [*short, 4, 6]),
        ):  # fmt: skip
            wanted = model.llama.hf(torch.tensor([prompt + text])).logits[0, -1]
            assert torch.allclose(found, wanted, atol=1e-4)


def test_what_is_inserted_is_read_and_not_counted(model: Model) -> None:
    class Inserts(Row):
        def look(self) -> None:
            if self.tokens == 2:
                self.insert("12")

    (row,) = decode(model, "a prompt", [Inserts(model, "x", budget=5)])
    assert row.tokens == 5 and len(row.ids) == 7 and model.decode(row.ids[2:4]) == "12"


CALLS = [
    ("<T>add(1,2,3)=", "6"), ("<T>power(0.5, 2)=", "0.25"), ("<T>gcd(12, 18)=", "6"), ("<T>log(1000)=", "3"),
    ("<T>ad(1,2)=", "name"), ("<T>add(1)=", "argument"), ("<T>sqrt(1,2)=", "argument"), ("<T>add(1,4/3)=", "argument"),
    ("<T>add 1,2)=", "syntax"), ("<T>divide(1,0)=", "value"), ("<T>sqrt(-1)=", "value"), ("<T>gcd(1.5,2)=", "value"),
    ("<T>power(-8,0.5)=", "value"), ("<T>power(9,99999)=", "value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), CALLS)
def test_calls_of_funcqa(text: str, wanted: str) -> None:
    try:
        assert funcqa.run(text) == wanted
    except funcqa.Failed as failed:
        assert str(failed) == wanted
    if wanted == "name":
        assert funcqa.run(text, fuzzy=True) == "3"


PATHS = {
    "/movie/top": {"get": {}},
    "/movie/{id}": {"get": {"parameters": [{"in": "query", "name": "language"}], "description": "The details. More."}},
    "/list/{id}/item": {"post": {}},
}


def test_operations() -> None:
    operations = restbench.Operations({"paths": PATHS})
    for line, wanted in (
        (" GET /movie/top to get it", "GET /movie/top"), ("GET /movie/7?language=en", "GET /movie/{id}"),
        ('POST /list/7/item {"a": 1}', "POST /list/{id}/item"), ("GET /movie/7/x", ""), ("DELETE /movie/7", ""),
        ("get the movie", ""),
    ):  # fmt: skip
        assert operations.called(line) == wanted
    assert operations.lines[1] == "GET /movie/{id}: The details. Parameters: language."


TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": "It looks.", "parameters": {
        "type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}}
    for name in ("search", "searches")
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted", "fuzzy"),
    [
        ('Thought: x\nAction: search\nAction Input: {"q": "a"}', "", ""),
        ('Action: search\nAction Input: {"q": "a", "n": 1}\nObservation: 1', "", ""),
        ('Action: serch\nAction Input: {"q": "a"}', "name", ""),
        ('Action: search\nAction Input: {"n": 1}', "argument", "argument"),
        ('Action: search\nAction Input: {"q": "a", "z": 1}', "argument", "argument"),
        ('Action: search\nAction Input: {"q": "a", "n": true}', "argument", "argument"),
        ("Action: search\nAction Input: a", "argument", "argument"),
        ("Action: search", "syntax", "syntax"),
    ],
)
def test_actions(text: str, wanted: str, fuzzy: str) -> None:
    assert tooleval.failure(text, TOOLS) == wanted and tooleval.failure(text, TOOLS, fuzzy=True) == fuzzy


def test_intervals() -> None:
    """By Wilson's formula, as tables of statistics have it."""
    for count, total, low, high in (
        (0, 10, 0.0, 0.278),
        (5, 10, 0.237, 0.763),
        (10, 10, 0.722, 1.0),
        (1, 100, 0.002, 0.054),
    ):
        assert tables.interval(count, total) == pytest.approx((low, high), abs=0.001)


def _data(folder: Path) -> Path:
    """Two problems of each data set, in their forms."""
    files: dict[str, Any] = {
        "data/funcqa/funcqa_oh.json": [{"question": "How many?", "answer": 3, "func": "<add>(1,2)=3"}] * 2,
        "data/funcqa/funcqa_mh.json": [
            {"question": "How many?", "answer": "3", "calculation": ["<add>(1,2)=3"] * 3}
        ] * 2,
        "data/kamel/api_desc.json": {f"P{n}": f"{name}(x): it" for n, name in enumerate(("rank", "rank", "place"))},
        "data/kamel/test_first_100.json": [
            {"question": "Where?", "answer": [{"chosen": "Bern", "alternative": ["Berne"]}], "api": "P1"}
        ] * 2,
        "data/restbench/tmdb.json": [{"query": "the best", "solution": ["GET /movie/top", "GET /movie/{id}"]}] * 2,
        "data/tooleval/gpt35_cot_G2_category.json": {
            str(n): {"query": "look", "available_tools": TOOLS} for n in range(2)
        },
        "openapi/tmdb_oas.json": {
            "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
            "paths": {"/movie/top": {"get": {"responses": {}}}, "/movie/{id}": {"get": {"responses": {}, "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]}}},
        },
    }  # fmt: skip
    shot = "Q: How?\nA: It is 1+2=<add>(1,2)=3.\n\n"
    texts = {
        "data/funcqa/template_oh/llama_func.txt": f"Answer:\n\n{shot}Q: [QUESTION]\nA:",
        "data/funcqa/template_mh/llama_func.txt": f"Answer:\n\n{shot}Question: [QUESTION]\nAnswer:",
        "data/kamel/template/kamel_first_30.txt": "Question: What?\nAnswer: The answer is <P0>(x)=y\n" * 8,
    }
    for name, content in {**{name: json.dumps(value) for name, value in files.items()}, **texts}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder / "data"


def test_a_run(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every part and arm with a random model; under the bundle no call is faulty. What is there is not run again."""
    monkeypatch.setitem(kamel.SIZES, "60", (3, "100"))
    out = tmp_path / "records.jsonl"
    parts = "funcqa-oh,funcqa-mh,kamel-60,restbench,tooleval-g2"
    words = ["run", "--model", str(model.folder), "--data", str(_data(tmp_path)), "--out", str(out), "--parts", parts]
    command.main([*words, "--count", "1"])
    first = out.read_text().splitlines()
    command.main([*words, "--count", "2"])
    lines = out.read_text().splitlines()
    assert lines[: len(first)] == first and len(lines) == 2 * len(first)
    rows = [json.loads(line) for line in lines]
    assert {(row["part"], row["arm"]) for row in rows} == {
        (part, arm) for part in parts.split(",") for arm in command.PARTS[part][0].ARMS
    }
    for row in rows:
        if row["arm"] in ("bundle", "documented bundle", "names", "side"):
            assert not {"name", "argument", "syntax"} & set(row["failed"]), row
        if row["arm"] == "free" and "funcqa" in row["part"]:
            assert row["failed"]
    command.main(["tables", str(out)])
    printed = capsys.readouterr().out
    assert all(part in printed for part in parts.split(",")) and "| fuzzy | 2 |" in printed
