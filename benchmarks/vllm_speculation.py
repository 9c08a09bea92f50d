"""Speculation inside vLLM: passes per call, prefill avoided and seconds per turn, with and without, in the real engine.

    python -m benchmarks.vllm_speculation MODEL --turns 200 --at-once 8 [--out results.json]

One engine, in this process but for its worker, runs the same turns in arms that follow each other:

    off       masks, no drafts
    forced    drafts of forced tokens
    hit       the output of the very call that comes is handed in: its rest is drafted
    miss      the output of another call of the tool is handed in
    returns   two turns, and the client comes back with the output between them
    resident  two turns, and the output, handed in, keeps the sequence in the engine

Greedy texts must be equal in all arms, token by token. Then the calls of sampled turns are counted with and without
drafts, and compared by χ².

Leaves out   what the tools do: outputs are there at once. HTTP.
Honest       seconds are of the wall, and on a busy machine say little; passes and CPU seconds of both processes do.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DRAFTS = 16
SCHEDULER = "toolc.runtime.adapters.vllm_scheduler.DraftingScheduler"
PROPOSER = "toolc.runtime.adapters.vllm_drafts.NoDrafts"
PLACES = "Paris Oslo Lima Cairo Tokyo Quito Delhi Rome Bern Accra Seoul Perth Dublin Hanoi Riga Turin".split()
SAYINGS = (
    "What is the weather in {}?",
    "Tell me how warm it is in {} today.",
    "I fly to {} tomorrow. Will it rain?",
    "How many dollars are {} euros? The hotel is in {}.",
    "Compare {} with other towns.",
)


def tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "input_schema": schema, "x-toolc": {"read_only": True}}


TOOLS = [
    tool("get_weather", {"city": {"type": "string", "maxLength": 20}, "units": {"enum": ["celsius", "fahrenheit"]}}),
    tool(
        "convert",
        {
            "amount": {"type": "integer", "minimum": 0, "maximum": 9999},
            "source": {"enum": ["EUR", "USD", "GBP"]},
            "target": {"enum": ["EUR", "USD", "GBP"]},
        },
    ),
]
SYSTEM = """You answer with calls of functions. The functions are:
{}
For each call write a JSON object with the name and the arguments within <tool_call></tool_call>, as in
<tool_call>
{{"name": "get_weather", "arguments": {{"city": "Prague", "units": "celsius"}}}}
</tool_call>"""
DICE = [tool("pick", {"fruit": {"enum": ["apple", "pear", "fig", "plum"]}, "size": {"enum": ["small", "large"]}})]


class Turns:
    """Runs turns on an engine.

    Args:
        model: a folder.
        at_once: requests at most.
        extra: of the engine.
    """

    def __init__(self, model: str, at_once: int, drafts: int = DRAFTS, **extra: Any) -> None:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # so that the scheduler is here
        from vllm import LLM

        speculative = {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": drafts}
        self.llm = LLM(
            model,
            enforce_eager=True,
            max_model_len=1024,
            max_num_seqs=at_once,
            dtype="float32",  # so that the order of sums seldom decides between tokens
            scheduler_cls=SCHEDULER,
            speculative_config=speculative,
            **extra,
        )
        self.at_once = at_once
        self.tokenizer = self.llm.get_tokenizer()
        # Imported only now: vLLM 0.32 starts no worker on the CPU where numba's library was loaded before
        # (triton_utils/dispatcher.py:139 takes every object of every module for one that has a plain `__dict__`).
        from toolc.runtime.adapters.vllm_outputs import Continuation

        self.after = Continuation(self.tokenizer).tokens
        self.scheduler = self.llm.llm_engine.engine_core.engine_core.scheduler
        self._count = 0

    def drafting(self, on: bool) -> None:
        """Turn drafts on or off."""
        from vllm.v1.core.sched.scheduler import Scheduler

        self.scheduler.__dict__.pop("update_draft_token_ids", None)
        if not on:
            self.scheduler.update_draft_token_ids = functools.partial(Scheduler.update_draft_token_ids, self.scheduler)

    def prompt(self, text: str, tools: Sequence[dict[str, Any]] = ()) -> list[int]:
        system = SYSTEM.format("\n".join(json.dumps(one) for one in tools))
        chat = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def run(
        self,
        prompts: Sequence[list[int]],
        params: Callable[[int], Any],
        outputs: Callable[[int], list[list[Any]]] = lambda n: [],
    ) -> list[list[int]]:
        """The tokens of every turn, `at_once` at a time; outputs are handed in as soon as a request may have them."""
        engine, first = self.llm.llm_engine, self._count
        self._count += len(prompts)
        said: dict[int, list[int]] = {}
        left, open_outputs, running = list(range(len(prompts)))[::-1], {}, 0
        while len(said) < len(prompts):
            while left and running < self.at_once:
                n = left.pop()
                running += 1
                engine.add_request(f"turn{first + n}", {"prompt_token_ids": prompts[n]}, params(n))
                if outputs(n):
                    open_outputs[n] = outputs(n)
            for n in list(open_outputs):
                if self.scheduler.cache_outputs(f"turn{first + n}", open_outputs[n])["cached"]:
                    del open_outputs[n]
            for output in engine.step():
                if output.finished:
                    n = int(output.request_id.removeprefix("turn")) - first
                    said[n] = list(output.outputs[0].token_ids)
                    open_outputs.pop(n, None)
                    running -= 1
        return [said[n] for n in range(len(prompts))]


def call_of(bundle: Any, entry: str, tokens: Sequence[int]) -> Any:
    """The only call of a turn; None if there is none, or there are several."""
    from toolc.runtime import DecodeError, Reader

    reader = Reader(bundle, entry)
    try:
        for token in tokens:
            reader.feed(token)
        reader.finish()
    except DecodeError:  # it was cut
        return None
    return reader.calls[0] if len(reader.calls) == 1 else None


def seconds_of_processes() -> float:
    """CPU seconds of this process and its children."""
    import psutil

    mine = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (mine, *mine.children(recursive=True)))


def measured(turns: Turns, run: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What it gives, and what it took."""
    before, wall, cpu = vars(turns.scheduler.counts).copy(), time.perf_counter(), seconds_of_processes()
    found = run()
    took: dict[str, float] = {key: vars(turns.scheduler.counts)[key] - before[key] for key in before}
    took |= {"seconds": time.perf_counter() - wall, "cpu": seconds_of_processes() - cpu}
    return found, took


def bench(turns: Turns, count: int, sampled: int, told: Callable[[str, dict[str, Any]], None]) -> None:
    """Run all arms; `told` gets each one's name and figures as they come."""
    from vllm import SamplingParams

    from toolc.compiler import Options, compile_tools

    folder = Path(os.environ["TOOLC_BUNDLES"])
    model = str(turns.llm.llm_engine.model_config.model)
    bundles = {
        name: compile_tools(tools, model, options=Options(protocol="hermes")).bundle
        for name, tools in (("tools", TOOLS), ("dice", DICE))
    }
    for name, bundle in bundles.items():
        bundle.write(folder / f"{name}.toolc", standalone=True)
    entries = ("required/one", "required", "required/one", "auto")
    texts = [SAYINGS[n % len(SAYINGS)].format(PLACES[n % len(PLACES)], n) for n in range(count)]
    prompts = [turns.prompt(text, TOOLS) for text in texts]

    def greedy(n: int, **more: Any) -> Any:
        chosen = {"toolc_bundle": "tools", "toolc_entry": entries[n % len(entries)], **more}
        return SamplingParams(temperature=0, max_tokens=96, extra_args=chosen)

    turns.drafting(False)
    said, took = measured(turns, lambda: turns.run(prompts, greedy))
    calls = [call_of(bundles["tools"], entries[n % len(entries)], one) for n, one in enumerate(said)]
    told("off", took | {"turns": count, "calls": sum(one is not None for one in calls)})

    def handed(n: int, hit: bool) -> list[list[Any]]:
        call = calls[n]
        if call is None:
            return []
        arguments = dict(call.arguments)
        if not hit:
            other = {"city": "Nowhere", "units": "celsius", "amount": 4321, "source": "GBP", "target": "USD"}
            arguments = {key: other[key] for key in arguments}
        output = json.dumps({"value": n})
        return [[call.name, arguments, output, None, turns.after(call.name, output)]]

    turns.drafting(True)
    for arm, outputs in (
        ("forced", lambda n: []),
        ("hit", lambda n: handed(n, True)),
        ("miss", lambda n: handed(n, False)),
    ):
        again, took = measured(turns, lambda outputs=outputs: turns.run(prompts, greedy, outputs))
        told(arm, took | {"turns": count, "differ": sum(a != b for a, b in zip(said, again, strict=True))})

    some = [n for n in range(count) if calls[n] is not None and entries[n % len(entries)] == "required/one"][
        : count // 4
    ]
    if some:
        bridges = [handed(n, True)[0][4] for n in some]
        longer = [prompts[n] + said[n] + bridge for n, bridge in zip(some, bridges, strict=True)]

        def returns() -> list[list[int]]:
            first = turns.run([prompts[n] for n in some], lambda n: greedy(some[n]))
            second = turns.run(longer, lambda n: greedy(some[n]))
            return [a + bridge + b for a, bridge, b in zip(first, bridges, second, strict=True)]

        def resident() -> list[list[int]]:
            return turns.run(
                [prompts[n] for n in some],
                lambda n: SamplingParams(
                    temperature=0,
                    max_tokens=96 + len(said[some[n]]),
                    extra_args={"toolc_bundle": "tools", "toolc_entry": "required/one", "toolc_resident": 1},
                ),
                lambda n: handed(some[n], True),
            )

        whole, took = measured(turns, returns)
        read = sum(map(len, longer))
        told("returns", took | {"turns": 2 * len(some), "prompts": read})
        again, took = measured(turns, resident)
        told(
            "resident",
            took | {"turns": 2 * len(some), "differ": sum(a != b for a, b in zip(whole, again, strict=True))},
        )

    prompt = turns.prompt("Pick a fruit.", DICE)

    def random(n: int) -> Any:
        return SamplingParams(
            temperature=1.0,
            seed=None,
            max_tokens=64,
            extra_args={"toolc_bundle": "dice", "toolc_entry": "required/one"},
        )

    counted = {}
    for arm, on in (("sampled off", False), ("sampled", True)):
        turns.drafting(on)
        guess = [["pick", {"fruit": "fig", "size": "small"}, "0", None, []]] if on else []
        found, took = measured(turns, lambda guess=guess: turns.run([prompt] * sampled, random, lambda n: guess))
        calls_of_arm = [call_of(bundles["dice"], "required/one", one) for one in found]
        counted[arm] = Counter(str(one and tuple(one.arguments.values())) for one in calls_of_arm)
        told(arm, took | {"turns": sampled, "counts": dict(counted[arm])})
    told("chi2", chi2(counted["sampled off"], counted["sampled"]))


def chi2(first: Counter[str], second: Counter[str]) -> dict[str, Any]:
    """Whether two samples of the same size are of one distribution; what is seldom is put together."""
    seldom = {key for key in first | second if first[key] + second[key] < 10}
    table = [(first[key], second[key]) for key in sorted(set(first | second) - seldom)]
    rest = sum(first[key] for key in seldom), sum(second[key] for key in seldom)
    table += [rest] if sum(rest) >= 10 else []
    a, b = sum(x for x, _ in table), sum(y for _, y in table)
    value = sum(
        (x - (x + y) * a / (a + b)) ** 2 / ((x + y) * a / (a + b))
        + (y - (x + y) * b / (a + b)) ** 2 / ((x + y) * b / (a + b))
        for x, y in table
    )
    return {"chi2": value, "freedom": len(table) - 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--sampled", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--drafts", type=int, default=DRAFTS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {"at_once": given.at_once, "drafts": given.drafts}

    def told(arm: str, took: dict[str, Any]) -> None:
        results[arm] = took | {"load": os.getloadavg()[0]}
        print(
            arm,
            {key: round(value, 3) if isinstance(value, float) else value for key, value in took.items()},
            flush=True,
        )
        if given.out is not None:
            given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    with TemporaryDirectory() as folder:
        os.environ["TOOLC_BUNDLES"] = folder
        bench(Turns(given.model, given.at_once, given.drafts), given.turns, given.sampled, told)


if __name__ == "__main__":
    main()
