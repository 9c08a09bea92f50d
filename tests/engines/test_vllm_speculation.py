"""Speculation inside the real vLLM: texts equal with and without, outputs handed in over HTTP, requests that end alone.

Run by the interpreter of the engines' environment. The engines run in processes of their own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .serving import Server, environment, serving

ROOT = Path(__file__).parents[2]
KEY = "secret"

pytestmark = pytest.mark.slow


# ---------------------------------------------------------------- in one process


@pytest.fixture(scope="module")
def arms(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The benchmark, small."""
    out = tmp_path_factory.mktemp("arms") / "results.json"
    command = [sys.executable, "-m", "benchmarks.vllm_speculation", str(model), "--out", str(out)]
    command += ["--turns", "12", "--eights", "12", "--ones", "0"]
    command += ["--sampled", os.environ.get("TOOLC_SAMPLED", "24")]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    done = subprocess.run(
        command, cwd=ROOT, env=environment(PYTHONPATH=path), capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("arm", ["hit", "off 8", "forced 8", "hit 8", "miss 8", "resident 8"])
def test_greedy_texts_are_equal_with_and_without(arms: dict[str, Any], arm: str) -> None:
    assert arms[arm]["differ"] == 0
    assert (arms[arm]["accepted"] > 0) is (arm != "off 8")


def test_drafts_save_passes(arms: dict[str, Any]) -> None:
    assert arms["off 8"]["passes"] == arms["off 8"]["tokens"] == arms["hit 8"]["tokens"]
    assert arms["hit 8"]["passes"] < arms["forced 8"]["passes"] < arms["off 8"]["passes"]


def test_a_cached_output_keeps_the_sequence(arms: dict[str, Any]) -> None:
    stays, returns = arms["resident 8"], arms["returns 8"]
    assert stays["resident"] == stays["requests"] > 0 and stays["inserted"] > 0
    assert stays["requests"] * 2 == returns["requests"]


def test_temperatures_of_drafts_are_those_of_their_requests() -> None:
    """vLLM 0.32 on a CPU leaves them unset."""
    torch, drafts = pytest.importorskip("torch"), pytest.importorskip("toolc.runtime.adapters.vllm_drafts")
    given, ends = torch.tensor([0.7, 0.0, 2.0, 0.0]), torch.tensor([2, 2, 5, 6], dtype=torch.int32)
    found = drafts.expanded(given, ends, 6, 0, 1)
    assert torch.equal(found, torch.tensor([0.7, 0.7, 2.0, 2.0, 2.0, 1.0]))
    tops = torch.tensor([5, 7], dtype=torch.int32)
    assert drafts.expanded(tops, ends[:2], 2).tolist() == [5, 5]


def test_sampled_calls_are_of_one_distribution(arms: dict[str, Any]) -> None:
    """χ² at 0.001, of as many samples as the time allows; the benchmark draws more."""
    limits = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32, 8: 26.12}
    assert "None" not in arms["sampled"]["counts"] and "None" not in arms["sampled off"]["counts"]
    if arms["chi2"]["freedom"]:
        assert arms["chi2"]["chi2"] < limits[arms["chi2"]["freedom"]]


# ---------------------------------------------------------------- over HTTP


def operators_commands() -> tuple[dict[str, str], list[str]]:
    """What docs/speculate.md exports, and the words of its `vllm serve`."""
    text = (ROOT / "docs" / "speculate.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) if "vllm serve" in one]
    lines = [shlex.split(line, comments=True) for line in block.replace("\\\n", " ").splitlines()]
    exports = dict(word.split("=", 1) for line in lines if line[:1] == ["export"] for word in line[1:])
    (serve,) = [line for line in lines if line[:2] == ["vllm", "serve"]]
    return exports, serve


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`vllm serve` with what docs/speculate.md tells an operator to give."""
    from benchmarks.vllm_speculation import TOOLS
    from toolc.compiler import Options, compile_tools

    folder = tmp_path_factory.mktemp("server")
    tools = [*TOOLS, {**TOOLS[0], "name": "send", "x-toolc": {"read_only": False}}]
    made = compile_tools(tools, str(model), options=Options(protocol="hermes")).bundle
    made.write(folder / "tools.toolc", standalone=True)
    exports, words = operators_commands()
    variables = environment(**exports, TOOLC_BUNDLES=str(folder), VLLM_API_KEY=KEY)
    with serving(model, folder / "log", variables, words[3:]) as found:
        yield found


def open_(server: Server, path: str, body: Any, key: str = KEY) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    return urllib.request.urlopen(urllib.request.Request(server.url + path, data, headers), timeout=300)


def ask(server: Server, path: str, body: Any) -> Any:
    return json.loads(open_(server, path, body).read())


def refused(server: Server, path: str, body: Any, key: str = KEY) -> tuple[int, Any]:
    with pytest.raises(urllib.error.HTTPError) as error:
        open_(server, path, body, key)
    return error.value.code, json.loads(error.value.read())


def stream(server: Server, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for line in open_(server, "/v1/chat/completions", {"model": "small", "stream": True, **body}):
        if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
            yield json.loads(line[6:])


ASKED = {
    "messages": [{"role": "user", "content": "How many dollars are 7 euros?"}],
    "max_tokens": 150,
    "temperature": 0,
    "vllm_xargs": {"toolc_bundle": "tools", "toolc_entry": "required/one"},
}
CALL = {"name": "convert", "params": {"amount": 7, "source": "EUR", "target": "USD"}, "output": '{"dollars": 8}'}


def said(chunks: list[dict[str, Any]]) -> str:
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in chunks if one["choices"])


def test_outputs_are_handed_in_while_the_answer_is_on_its_way(server: Server) -> None:
    """The same text, whether outputs are handed in or not; afterwards the response is unknown."""
    plain = said(list(stream(server, ASKED)))
    chunks = []
    for chunk in stream(server, ASKED):
        if not chunks:
            path = f"/v1/cache-tool-output/{chunk['id']}"
            other = {**CALL, "params": {**CALL["params"], "amount": 1}}
            told = ask(server, path, [CALL, other])
        chunks.append(chunk)
    assert told == {"cached": 2}
    assert said(chunks) == plain
    code, body = refused(server, path, [CALL])
    assert code == 404 and "no such request" in body["error"]["message"]


def test_what_is_inserted_stands_between_the_delimiters_of_its_message(server: Server) -> None:
    """The turn that would come is handed in; the stream then holds two turns, and an answer in one piece says where."""
    from toolc.runtime import Bundle, Reader
    from toolc.runtime.speculate.turns import turns_of

    bundle = Bundle.open(server.log.parent / "tools.toolc")
    marked = {**ASKED["vllm_xargs"], "toolc_tools": "convert,get_weather"}
    reader = Reader(bundle, "required/one")
    reader.feed_text(said(list(stream(server, {**ASKED, "vllm_xargs": marked}))))
    reader.finish()
    call = {"name": reader.calls[0].name, "params": dict(reader.calls[0].arguments), "output": '{"value": 8}'}
    asked = {**ASKED, "skip_special_tokens": False, "vllm_xargs": {**marked, "toolc_resident": 1}}
    chunks = []
    for chunk in stream(server, asked):
        if not chunks:
            ask(server, f"/v1/cache-tool-output/{chunk['id']}", [call])
        chunks.append(chunk)
    first, inserted, second = turns_of(said(chunks), "<|im_end|>", "<|im_start|>assistant\n")
    assert inserted.text == '\n<|im_start|>tool\n{"value": 8}<|im_end|>\n<|im_start|>assistant\n'
    assert first.text.startswith("<tool_call>") and second.text.startswith("<tool_call>")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", 400, "no JSON"),
        ([{"name": "convert"}], 400, "expected text"),
        ([{**CALL, "more": 1}], 400, "no member"),
        ([CALL] * 65, 413, "entries"),
        (b'["' + b"a" * (1 << 20) + b'"]', 413, "larger than"),
    ],
)
def test_bodies_that_are_refused(server: Server, body: Any, code: int, text: str) -> None:
    found, about = refused(server, "/v1/cache-tool-output/chatcmpl-1", body)
    assert found == code and text in about["error"]["message"]


def test_entries_that_are_refused_are_named(server: Server) -> None:
    for bad, text in (
        ({**CALL, "name": "send"}, "may not be run early"),
        ({**CALL, "name": "nothing"}, "no such tool"),
        ({**CALL, "output": "a" * (65 << 10)}, "output_bytes"),
    ):
        chunks = stream(server, ASKED)
        path = f"/v1/cache-tool-output/{next(chunks)['id']}"
        code, about = refused(server, path, [CALL, bad])
        assert code == 400 and text in about["error"]["message"] and about["error"]["param"] == "1"
        assert list(chunks)


def test_both_paths_ask_for_the_key(server: Server) -> None:
    for path in ("/v1/cache-tool-output/chatcmpl-1", "/cache-tool-output/chatcmpl-1"):
        assert refused(server, path, [CALL], key="other")[0] == 401
        assert refused(server, path, [CALL])[0] == 404


def test_a_bundle_that_is_gone_ends_its_own_request(server: Server) -> None:
    missing = {**ASKED, "vllm_xargs": {"toolc_bundle": "missing"}}
    code, _ = refused(server, "/v1/chat/completions", {"model": "small", **missing})
    assert code in (400, 500)
    assert said(list(stream(server, ASKED))).startswith("<tool_call>")
    free = {**ASKED, "vllm_xargs": {}, "max_tokens": 5}
    assert ask(server, "/v1/chat/completions", {"model": "small", **free})["choices"]
