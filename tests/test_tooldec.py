"""The experiments of benchmarks/tooldec: what is counted as a fault, what a table says, and a run over tiny data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.tooldec import __main__ as command  # noqa: E402
from benchmarks.tooldec import funcqa, kamel, restbench, rows, tables, tooleval, unseen  # noqa: E402
from benchmarks.tooldec.decode import Model, Row, decode  # noqa: E402
from benchmarks.tooldec.llama import Texts  # noqa: E402
from toolc.compiler import Options, compile_tools  # noqa: E402

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
        (" GET /movie/top to get it", "GET /movie/top"),
        ("GET /movie/7?a=b to ", "GET /movie/{id}"), ("GET /movie/7?language=en", "GET /movie/{id}"),
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


def _answer(*steps: str) -> dict[str, Any]:
    """A recorded answer in the data's form: a chain, each step cut to 100 characters."""
    node: list[Any] = []
    for step in reversed(steps):
        node = [{"role": "tool", "message": step[:100], "next": node}]
    return {"answer_details": [{"role": "system", "message": "", "next": node}]}


ANSWER = _answer(
    r"""{'name': 'search', 'arguments': '{\n  "q": "a\'b"\n}', 'response': '{"error": ""}'}""",
    r"""{'name': 'searches', 'arguments': '{}', 'response': '""" + "x" * 100,
    r"""{'name': 'search', 'arguments': '{"q": \"""" + "x" * 100,
)


def test_recorded_steps() -> None:
    first, second, third = tooleval.recorded(ANSWER)
    assert first == ("search", {"q": "a'b"}, '{"error": ""}')
    assert second is not None and second[:2] == ("searches", {}) and set(second.response) == {"x"}
    assert third is None
    assert tooleval.follows(first, "search", ' {"q" : "a\'b"}\n') and not tooleval.follows(third, "search", "{}")
    assert not any(
        tooleval.follows(first, *one) for one in (("searches", '{"q": "a\'b"}'), ("search", "{}"), ("search", "a"))
    )


class Told(tooleval.Steps):
    """Writes given actions, and ends behind each."""

    said: list[str]

    def _open(self, entry: str) -> None:
        super()._open(entry)
        self.queue = []

    def _best(self, logits: torch.Tensor) -> int:
        if not self.queue:
            self.queue = [*self.model.encode(self.said.pop(0)), next(iter(self.model.ends))]
        return self.queue.pop(0)

    queue: list[int] = []


SAID = "Action: search\nAction Input: "


@pytest.mark.parametrize(
    ("said", "calls", "followed", "failed"),
    [
        (['{"q": "a"}'] * 2, 2, 1, ""),  # the second one is not the recorded one
        (["{}"], 1, 0, "argument"),
        (['{"q": "a"}', '{"q": "b"}', '{"q": "c"}'], 3, 2, ""),  # what is recorded is cut there
        (['{"q": "a"}', "{"], 2, 1, "argument"),
    ],
)
def test_actions_are_replayed(model: Model, said: list[str], calls: int, followed: int, failed: str) -> None:
    steps = [f"""{{'name': 'search', 'arguments': '{{"q": "{q}"}}', 'response': 'seen {q}'}}""" for q in "ab"]
    row = Told(model, "Thought:", {"available_tools": TOOLS, "answer": _answer(*steps)}, None)
    row.said = [SAID + one for one in said]
    assert list(decode(model, "a prompt", [row])) == [row] and not row.said
    assert (row.calls, row.followed, row.failed) == (calls, followed, failed)
    assert row.text.count("Observation: seen") == followed
    if followed == 1 and not failed:
        assert row.text == SAID + '{"q": "a"}\nObservation: seen a\nThought:' + SAID + '{"q": "a"}'


def test_the_sixth_action_is_finish(model: Model) -> None:
    """After five recorded actions the bundle lets `Finish` through, and nothing else."""
    tools = [*TOOLS, {"name": "Finish", "parameters": {"type": "object", "properties": {
        "return_type": {"enum": ["give_answer", "give_up_and_restart"]}, "final_answer": {"type": "string"}},
        "required": ["return_type"]}}]  # fmt: skip
    options = Options(protocol="react", closed=True, named=False, skip=True, repair=True)
    bundle = compile_tools(tools, model.folder, options=options).bundle
    step = """{'name': 'search', 'arguments': '{"q": "a"}', 'response': 'seen'}"""
    row = Told(model, "Thought:", {"available_tools": tools, "answer": _answer(*[step] * 7)}, bundle)
    row.said = [f' it\n{SAID}{{"q": "a"}}'] * tooleval.STEPS
    entries = []
    opened = row._open
    row._open = lambda entry: (entries.append(entry), opened(entry))  # type: ignore[method-assign, func-returns-value]
    scripted = Told._best

    def best(logits: torch.Tensor) -> int:
        return scripted(row, logits) if row.said or row.queue else tooleval.Steps._best(row, logits)

    row._best = best  # type: ignore[method-assign]
    list(decode(model, "a prompt", [row]))
    assert entries == ["auto/inside"] * (tooleval.STEPS - 1) + ["none/inside"]
    assert row.calls == tooleval.STEPS + 1 and row.followed == tooleval.STEPS and not row.failed
    assert "Action: Finish" in row.text.rpartition("Observation")[2]


def test_intervals() -> None:
    """By Wilson's formula, as tables of statistics have it."""
    for count, total, low, high in (
        (0, 10, 0.0, 0.278),
        (5, 10, 0.237, 0.763),
        (10, 10, 0.722, 1.0),
        (1, 100, 0.002, 0.054),
    ):
        assert tables.interval(count, total) == pytest.approx((low, high), abs=0.001)


def test_sign_test() -> None:
    """Against a binomial table; no difference is no evidence."""
    assert tables.sign_test(0, 0) == 1 and tables.sign_test(3, 3) == 1
    assert tables.sign_test(5, 0) == pytest.approx(2 / 2**5) and tables.sign_test(1, 9) == pytest.approx(22 / 1024)


def test_pairs_of_arms() -> None:
    rows = {
        arm: {n: {"right": n in right} for n in range(4)} for arm, right in (("names", (0, 1, 2)), ("few-shot", (2, 3)))
    }
    wanted = "\n\nRight: names 2, few-shot 1 (p = 1)."
    assert tables._pairs("Right", rows, [("names", "few-shot"), ("side", "names")], "right") == wanted


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
            str(n): {"query": "look", "available_tools": TOOLS, "answer": ANSWER} for n in range(2)
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
    command.main(["tables", str(out), "--plot", str(tmp_path / "kamel.svg")])
    assert ">side</text>" in (tmp_path / "kamel.svg").read_text()
    printed = capsys.readouterr().out
    assert all(part in printed for part in parts.split(",")) and "| fuzzy | 2 | 2 | 0 |" in printed


def test_what_a_line_is_learned_from(model: Model) -> None:
    """Places behind the question, but for the result's, before which a call is due; figures as of transformers."""
    lines = [rows.Line(" 1+2=", "3", " now", 0), rows.Line(" it is", " 45", ".", 0)]
    lead = ["Q: a\nA:", "Q: longer\nA:"]
    places = rows.look(model, "a prompt", lead, lines)
    for n, (first, line) in enumerate(zip(lead, lines, strict=True)):
        head, begin, before, result, after = map(model.encode, ("a prompt", first, *line[:3]))
        tokens = [*head, *begin, *before, *result, *after]
        with torch.inference_mode():
            logits = model.llama.hf(torch.tensor([tokens])).logits[0]
        start = len(head) + len(begin) - 1
        due = start + len(before)
        numbers = [*range(start, due + 1), *range(due + len(result), len(tokens) - 1)]
        here = places.line == n
        assert places.row[here].tolist() == [0 if place == due else -1 for place in numbers]
        assert torch.allclose(places.log_sum[here], logits[numbers].logsumexp(-1), atol=1e-4)
        assert torch.allclose(places.best[here], logits[numbers].max(-1).values, atol=1e-4)
        wanted = torch.stack([logits[place, tokens[place + 1]] for place in numbers])
        assert torch.allclose(places.wanted[here][:-1], wanted[:-1], atol=1e-4)


def test_rows_are_fitted() -> None:
    """Two rows on states that tell the calls apart: each fires at its own places, and nowhere else."""
    torch.manual_seed(1)
    count, wide = 300, 16
    row = torch.arange(count) % 3 - 1
    states = torch.randn(count, wide) * 0.1 + torch.eye(wide)[row + 1] * 3
    flat = torch.zeros(count)
    places = rows.Places(states, flat + 5, flat + 3, flat + 3, row, torch.arange(count) // 3)
    found, about = rows.fit(places, 2)
    assert about["held out"] < about["before"] / 4
    assert rows.fired(found, places).tolist() == row.tolist()
    whole = torch.cat([places.log_sum[:, None], states @ found.T], 1).logsumexp(-1)
    own = torch.where(row < 0, places.wanted, (states * found[row.clamp(min=0)]).sum(-1))
    assert rows.loss(found, places).item() == pytest.approx((whole - own).mean().item(), abs=1e-5)


def _unseen_data(folder: Path) -> Path:
    data = _data(folder)
    shot = "Q: How?\nA: It is 1+2=<{0}>(1,2)=3.\n\n"
    for name in funcqa.FUNCTIONS:
        call = "2" if funcqa.FUNCTIONS[name][0] == (1, 1) else "2,1"
        answer = f"It is 2 {name} 1=<{name}>({call})=7<eoe>7 in all."
        line = json.dumps({"question": f"What is {name}?", "answer": answer})
        for folder in (data / "funcqa" / "training_data", data / "funcqa" / "template_oh"):
            folder.mkdir(exist_ok=True)
        (data / "funcqa" / "training_data" / f"{name}.jsonl").write_text("\n".join([line] * 5))
        (data / "funcqa" / "template_oh" / f"llama__{name}_.txt").write_text(shot.format(name) + "Q: [QUESTION]\nA:")
    (data / "funcqa" / "template_oh" / "llama_general.txt").write_text("Q: How?\nA: It is 3.\n\nQ: [QUESTION]\nA:")
    lines = [{"text": "Where? It is Bern.", "call": ['<f>P1("x")="Bern"</f>'], "api": "P1"}] * 12
    (data / "kamel" / "train_clean.json").write_text(json.dumps(lines))
    return data


def test_a_run_of_unseen_tools(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With rows only tools that were seen are called; under the bundle every call has a name and its arguments."""
    monkeypatch.setattr(rows, "STEPS", 40)
    monkeypatch.setattr(unseen, "SEEN_RELATIONS", 2)
    out = tmp_path / "unseen.jsonl"
    words = ["unseen", "--model", str(model.folder), "--data", str(_unseen_data(tmp_path)), "--out", str(out)]
    command.main([*words, "--parts", "lines,oh,kamel"])
    text = out.read_text()
    command.main([*words, "--parts", "lines,oh,kamel"])
    assert out.read_text() == text
    found = [json.loads(line) for line in text.splitlines()]
    out.write_text("".join(line for line in text.splitlines(True) if '"part": "oh", "arm": "list"' not in line))
    command.main([*words, "--parts", "lines,oh,kamel"])
    assert out.read_text() != text and sorted(out.read_text().splitlines()) == sorted(text.splitlines())
    arms = {(row["part"], row["arm"]) for row in found}
    assert arms == {
        *(("lines", arm) for arm in ("rows", "side", "list")), *(("oh", arm) for arm in unseen.ARMS),
        ("kamel", "rows"), ("kamel", "names"),
    }  # fmt: skip
    for row in found:
        if row["id"] == "fit":
            assert not row.get("before") or row["held out"] <= row["before"]
        elif row["arm"] == "rows" and row["part"] != "kamel":
            assert set(row["called"]) <= set(unseen.SEEN)
        elif row["part"] == "oh":
            assert row["failed"] in ("", "value") and bool(row["called"]) <= (row["arm"] != "plain")
    command.main(["tables", str(out)])
    assert "| list |" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "wanted"), [(" it is 1,234.5 now 7.", 7.0), ("-3e2", -300.0), ("none", None)])
def test_the_last_number(text: str, wanted: float | None) -> None:
    assert unseen.number(text) == wanted


def test_a_fired_row_calls(model: Model, tmp_path: Path) -> None:
    """A row that always fires: five calls, of which only the bundle's have names and arguments."""
    data = _unseen_data(tmp_path)
    prompts, plain = unseen.Prompts(model, data, "oh"), model.llama.head
    states = torch.zeros(1, plain.shape[1])
    try:
        model.llama.head = torch.cat([plain * 0, states + 1, states - 1])  # one of them is above 0, whatever the state
        (text,) = unseen.answered(model, prompts, "oh", "list", ["What is add?"])
    finally:
        model.llama.head = plain
    assert text.called and set(text.called) <= set(funcqa.FUNCTIONS)
    assert len(text.called) <= unseen.CALLS and text.failed in ("", "value")
