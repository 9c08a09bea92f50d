"""What constraints cost a real vLLM, beside its own backends: CPU seconds per token, and the time to the first token.

    python -m benchmarks.vllm_cpu --model FOLDER [--backend xgrammar] [--batches 1,16,64] [--runs 5]
    python -m benchmarks.vllm_cpu --model FOLDER --first 15         # on a quiet machine

One server of the V1 runner has toolc and one of vLLM's backends; the arms take turns: toolc, the backend, none. All
have the same prompts, greedy. toolc gets ordinary requests: `tools`, which have to be called, or a `response_format`.
The backend gets what vLLM makes of these for it as `structured_outputs`, which toolc leaves to the engine: of tools a
structural tag for xgrammar, a JSON list for guidance, which takes no such tags.

CPU     one JSON line a batch and arm: microseconds inside the constraint per token (admission, compiling, filling,
        accepting, applying), by stage, and of all processes; medians over the runs. Contents have been seen before.
First   one JSON line a case: milliseconds to the first chunk of the answer beyond those of the same prompt without a
        constraint, medians over lists of tools: `new` lists nobody has seen, `stored` ones that another process has
        compiled into the store, `again` ones that this server has answered before.

Leaves out   the GPU; the process of toolc's compiler, whose time is in `new`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engines.serving import Server, environment, serving

WATCH = Path(__file__).parent / "watch"
TOKENS = 40
KINDS = 4
"""Contents that requests take turns with."""


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A function tool whose schema the engine's own backends have to meet, too; the first property is required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    parameters["additionalProperties"] = False
    about = {"name": name, "description": name, "parameters": parameters, "strict": True}
    return {"type": "function", "function": about}


def listed(number: int, tools: int = 4) -> list[dict[str, Any]]:
    """A list of tools that no other number gives."""
    found = []
    for n in range(tools):
        here = f"{number}_{n}"
        properties = {
            f"city_{here}": {"type": "string", "maxLength": 12},
            f"days_{here}": {"type": "integer", "minimum": 1, "maximum": 9},
            f"unit_{here}": {"enum": ["celsius", "kelvin", f"unit_{here}"]},
            f"tags_{here}": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3},
            f"loud_{here}": {"type": "boolean"},
        }
        found.append(tool(f"tool_{here}", **properties))
    return found


def response(**properties: Any) -> dict[str, Any]:
    """A response format."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


def called(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Fields of a request that has to call tools."""
    return {"tools": tools, "tool_choice": "required"}


def fields(number: int) -> dict[str, Any]:
    """What the request of a number asks for."""
    title, year = {"type": "string", "maxLength": 40}, {"type": "integer", "minimum": 1800, "maximum": 2030}
    people = {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 4}
    kinds = (
        called(listed(0)),
        response(title=title, year=year, people=people),
        called([tool("weather", city=title, days={"type": "integer", "minimum": 1, "maximum": 9})]),
        response(mood={"enum": ["good", "bad"]}, why={"type": "string", "maxLength": 80}),
    )
    return kinds[number % KINDS]


def own(asked: dict[str, Any], backend: str) -> dict[str, Any]:
    """What vLLM makes of the fields of a request for a backend of its own."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.tool_parsers.structural_tag_registry import get_model_structural_tag
    from vllm.tool_parsers.utils import get_json_schema_from_tools

    if "response_format" in asked:
        return {"structured_outputs": {"json": asked["response_format"]["json_schema"]["schema"]}}
    tools = [ChatCompletionToolsParam(**one) for one in asked["tools"]]
    if backend == "guidance":
        return {"structured_outputs": {"json": get_json_schema_from_tools("required", tools)}}
    tag = get_model_structural_tag("hermes", tools, "required", reasoning=False)
    return {"structured_outputs": {"structural_tag": tag.model_dump_json()}}


def fields_of(arm: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The fields that an arm sends beside the messages."""
    return {"toolc": asked, "none": {}}[arm] if arm in ("toolc", "none") else own(asked, arm)


# ---- CPU


def read(folder: Path) -> dict[str, float]:
    """Seconds by stage, and of all processes."""
    time.sleep(0.6)  # they write four times a second
    sums: dict[str, float] = {}
    for path in folder.glob("*.json"):
        for stage, value in json.loads(path.read_text()).items():
            sums[stage] = sums.get(stage, 0.0) + (value if isinstance(value, float | int) else value[1])
    return sums


def run(server: Server, arm: str, batch: int) -> int:
    """Ask a batch of requests at once, of each kind at least one; returns how many tokens were written."""

    def one(n: int) -> int:
        more = fields_of(arm, fields(n))
        status, answer = server.chat(f"Tell me about number {n}.", max_tokens=TOKENS, **more)
        assert status == 200, answer
        return int(answer["usage"]["completion_tokens"])

    with ThreadPoolExecutor(batch) as pool:
        return sum(pool.map(one, range(max(batch, KINDS))))


def cpu(server: Server, watch: Path, arms: tuple[str, ...], batch: int, runs: int) -> Iterator[dict[str, Any]]:
    """A line for each arm: the first run only warms up."""
    spent: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
    for number in range(runs + 1):
        for arm in arms[number % len(arms) :] + arms[: number % len(arms)]:
            before = read(watch)
            tokens = run(server, arm, batch)
            now = read(watch)
            spent[arm].append({s: 1e6 * (now[s] - before.get(s, 0.0)) / tokens for s in now} | {"tokens": tokens})
    for arm in arms:
        mine = "toolc" if arm == "toolc" else "own" if arm != "none" else "nothing"
        stages = [stage for stage in spent[arm][0] if stage.startswith(mine)]
        shown: dict[str, Any] = {"batch": batch, "arm": arm}
        shown["us_per_token"] = _median(spent[arm], *stages)
        shown["all_processes_us_per_token"] = _median(spent[arm], "process")
        shown["tokens"] = int(_median(spent[arm], "tokens"))
        shown["stages"] = {stage: _median(spent[arm], stage) for stage in stages}
        yield shown


def _median(runs: list[dict[str, float]], *stages: str) -> float:
    return round(statistics.median(sum(run[stage] for stage in stages) for run in runs[1:]), 1)


# ---- the first token


def first_chunk(server: Server, **more: Any) -> float:
    """Milliseconds to the first chunk of an answer."""
    body = {"model": "small", "messages": [{"role": "user", "content": "How is the weather in Basel?"}]}
    body |= {"temperature": 0, "max_tokens": 4, "stream": True, **more}
    place = urllib.parse.urlsplit(server.url)
    link = http.client.HTTPConnection(str(place.hostname), place.port, timeout=300)
    try:
        data = json.dumps(body).encode()
        begun = time.perf_counter()
        link.request("POST", "/v1/chat/completions", data, {"Content-Type": "application/json"})
        answer = link.getresponse()
        line = answer.readline()
        spent = time.perf_counter() - begun
        assert answer.status == 200 and line.startswith(b"data: {"), line
        answer.read()
        return 1e3 * spent
    finally:
        link.close()


def first(server: Server, store: Path, model: Path, backend: str, lists: int) -> Iterator[dict[str, Any]]:
    """A line for each case."""
    numbers = iter(range(1, 10**6))

    def several(count: int) -> list[dict[str, Any]]:
        return [called(listed(next(numbers))) for _ in range(count)]

    def send(arm: str) -> Callable[[dict[str, Any]], float]:
        return lambda asked: first_chunk(server, **fields_of(arm, asked))

    for asked in several(3):  # kernels and caches that hold no list of tools
        for arm in ("toolc", backend, "none"):
            send(arm)(asked)
    stored = several(lists)
    for asked in stored:
        _store(asked["tools"], store, model)
    found: dict[str, list[float]] = {}
    for new, known in zip(several(lists), stored, strict=True):
        found.setdefault("none", []).append(send("none")(new))
        found.setdefault("toolc new", []).append(send("toolc")(new))
        found.setdefault(f"{backend} new", []).append(send(backend)(new))
        found.setdefault("toolc stored", []).append(send("toolc")(known))
        found.setdefault("toolc again", []).append(send("toolc")(new))
        found.setdefault(f"{backend} again", []).append(send(backend)(new))
    free = statistics.median(found["none"])
    for case, times in found.items():
        beyond = statistics.median(times) - (0 if case == "none" else free)
        yield {"case": case, "ms": round(beyond, 1), "lists": lists}


def _store(tools: list[dict[str, Any]], store: Path, model: Path) -> None:
    """Compile tools into a store, as docs/serving.md says for images."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as body:
        json.dump({"model": "small", "messages": [], "tools": tools}, body)
        body.flush()
        command = [sys.executable, "-m", "toolc.compiler.cli", "compile", body.name, "--store", str(store)]
        command += ["--tokenizer", str(model), "--protocol", "hermes"]
        subprocess.run(command, check=True, capture_output=True)


# ---- the server


@contextmanager
def started(model: Path, backend: str, scratch: Path, watched: bool) -> Iterator[Server]:
    """A server with toolc and a backend; $TOOLC_STORE and what it spends are folders of `scratch`."""
    (scratch / "watch").mkdir()
    plugins = {"VLLM_PLUGINS": "toolc", "TOOLC_STORE": str(scratch / "store"), "TOOLC_REQUESTS": "all"}
    plugins |= {"TOOLC_ON_REFUSAL": "400", "TOOLC_COMPILE_SECONDS": "300"}
    if watched:
        path = os.pathsep.join([str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])])
        watch = str(scratch / "watch")
        plugins |= {"VLLM_PLUGINS": "toolc,toolc_watch", "TOOLC_WATCH": watch, "PYTHONPATH": path}
    arguments = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--max-num-seqs", "64"]
    arguments += ["--structured-outputs-config.backend", backend]
    with serving(model, scratch / "log.txt", environment(**plugins), arguments) as server:
        yield server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--backend", default="xgrammar", choices=["xgrammar", "guidance"])
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first", type=int, metavar="LISTS", help="time the first token, of so many lists of tools")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        with started(given.model, given.backend, scratch, given.first is None) as server:
            if given.first is not None:
                lines = first(server, scratch / "store", given.model, given.backend, given.first)
            else:
                arms = ("toolc", given.backend, "none")
                batches = map(int, given.batches.split(","))
                lines = (
                    line
                    for batch in batches
                    for line in cpu(server, scratch / "watch", arms, batch, given.runs)
                )  # fmt: skip
            for line in lines:
                print(json.dumps({**line, "load": round(os.getloadavg()[0], 1)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
