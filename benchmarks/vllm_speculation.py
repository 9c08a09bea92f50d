"""Speculation inside vLLM: passes per call, prefill avoided and seconds per turn, with and without, in the real engine.

    python -m benchmarks.vllm_speculation MODEL [--turns 200] [--out results.json]

One engine, in this process but for its worker, runs the same turns in arms that follow each other:

    off       masks, no drafts; 200 turns, 16 at once, then fewer, 8 and 1 at once
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
MOST = 64
"""Tokens of a turn."""
MEMORY = 0.4
"""Part of the machine's memory that must be free."""
ENTRIES = ("required/one", "required/one", "required", "required/one", "auto", "required/one")
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
            gpu_memory_utilization=MEMORY,
            **extra,
        )
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
        at_once: int = 8,
    ) -> list[list[int]]:
        """The tokens of every turn, so many at once; outputs are handed in as soon as a request may have them."""
        engine, first = self.llm.llm_engine, self._count
        self._count += len(prompts)
        said: dict[int, list[int]] = {}
        left, open_outputs, running = list(range(len(prompts)))[::-1], {}, 0
        while len(said) < len(prompts):
            while left and running < at_once:
                n = left.pop()
                running += 1
                engine.add_request(f"turn{first + n}", {"prompt_token_ids": prompts[n]}, params(n))
                if outputs(n):
                    open_outputs[n] = outputs(n)
            for n in list(open_outputs):
                if self.scheduler.cache_outputs(f"turn{first + n}", open_outputs[n])["taken"]:
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


class Bench:
    """All arms.

    Args:
        turns: of the engine.
        count: turns whose texts are compared.
        told: gets every arm's name and figures as they come.
    """

    def __init__(self, turns: Turns, count: int, told: Callable[[str, dict[str, Any]], None]) -> None:
        from toolc.compiler import Options, compile_tools

        self.turns, self.told = turns, told
        self.model = str(turns.llm.llm_engine.model_config.model)
        self.bundles = {
            name: compile_tools(tools, self.model, options=Options(protocol="hermes")).bundle
            for name, tools in (("tools", TOOLS), ("dice", DICE))
        }
        for name, bundle in self.bundles.items():
            bundle.write(Path(os.environ["TOOLC_BUNDLES"]) / f"{name}.toolc", standalone=True)
        texts = [SAYINGS[n % len(SAYINGS)].format(PLACES[n % len(PLACES)], n) for n in range(count)]
        self.prompts = [turns.prompt(text, TOOLS) for text in texts]
        self.said: list[list[int]] = []

    def greedy(self, n: int, most: int = MOST, **more: Any) -> Any:
        from vllm import SamplingParams

        chosen = {"toolc_bundle": "tools", "toolc_entry": ENTRIES[n % len(ENTRIES)], **more}
        return SamplingParams(temperature=0, max_tokens=most, extra_args=chosen)

    def handed(self, n: int, hit: bool) -> list[list[Any]]:
        """What is handed in for a turn: the output of the call that comes, or of another one."""
        call = call_of(self.bundles["tools"], ENTRIES[n % len(ENTRIES)], self.said[n])
        if call is None:
            return []
        arguments = dict(call.arguments)
        if not hit:
            other = {"city": "Nowhere", "units": "celsius", "amount": 4321, "source": "GBP", "target": "USD"}
            arguments = {key: other[key] for key in arguments}
        output = json.dumps({"value": n})
        return [[0, call.name, arguments, output, None, self.turns.after(call.name, output)]]

    def arm(self, name: str, count: int, at_once: int, outputs: Callable[[int], list[list[Any]]] | None = None) -> None:
        """Greedy turns: without drafts, which are kept, or with them, which are compared."""
        self.turns.drafting(outputs is not None)
        run = functools.partial(self.turns.run, self.prompts[:count], self.greedy, outputs or (lambda n: []), at_once)
        found, took = measured(self.turns, run)
        if not self.said:
            self.said = found
        differ = sum(a != b for a, b in zip(self.said, found, strict=False))
        self.told(name, took | {"turns": count, "at once": at_once, "differ": differ})

    def arms(self, count: int, at_once: int) -> None:
        """The same turns with every kind of draft."""
        self.arm(f"off {at_once}", count, at_once)
        self.arm(f"forced {at_once}", count, at_once, lambda n: [])
        self.arm(f"hit {at_once}", count, at_once, lambda n: self.handed(n, True))
        self.arm(f"miss {at_once}", count, at_once, lambda n: self.handed(n, False))

    def resident(self, count: int, at_once: int) -> None:
        """Two turns with the output between them: the client comes back, or the sequence stays."""
        some = [n for n in range(0, len(self.said), len(ENTRIES)) if self.handed(n, True)][:count]
        prompts = [self.prompts[n] for n in some]
        bridges = [self.handed(n, True)[0][5] for n in some]
        longer = [self.prompts[n] + self.said[n] + bridge for n, bridge in zip(some, bridges, strict=True)]
        self.turns.drafting(True)

        def both() -> list[list[int]]:
            first = self.turns.run(prompts, lambda n: self.greedy(some[n]), at_once=at_once)
            second = self.turns.run(longer, lambda n: self.greedy(some[n]), at_once=at_once)
            return [a + bridge + b for a, bridge, b in zip(first, bridges, second, strict=True)]

        def stays() -> list[list[int]]:
            def params(n: int) -> Any:
                return self.greedy(some[n], MOST + len(self.said[some[n]]), toolc_resident=1)

            return self.turns.run(prompts, params, lambda n: self.handed(some[n], True), at_once)

        whole, took = measured(self.turns, both)
        about = {"turns": 2 * len(some), "at once": at_once}
        self.told(f"returns {at_once}", took | about | {"read again": sum(map(len, longer))})
        again, took = measured(self.turns, stays)
        differ = sum(a != b for a, b in zip(whole, again, strict=True))
        self.told(f"resident {at_once}", took | about | {"differ": differ})

    def sampled(self, count: int, at_once: int) -> None:
        """The calls of sampled turns, without drafts and with forced ones and the rest of a cached call."""
        from vllm import SamplingParams

        prompt = self.turns.prompt("Pick a fruit.", DICE)
        chosen = {"toolc_bundle": "dice", "toolc_entry": "required/one"}
        params = SamplingParams(temperature=1.0, max_tokens=MOST, extra_args=chosen)
        guess = [0, "pick", {"fruit": "fig", "size": "small"}, "0", None, []]
        counted = []
        for name, outputs in (("sampled off", []), ("sampled", [guess])):
            self.turns.drafting(bool(outputs))
            run = functools.partial(
                self.turns.run, [prompt] * count, lambda n: params.clone(), lambda n, given=outputs: given, at_once
            )
            found, took = measured(self.turns, run)
            calls = [call_of(self.bundles["dice"], "required/one", one) for one in found]
            counted.append(Counter(str(call and tuple(call.arguments.values())) for call in calls))
            self.told(name, took | {"turns": count, "counts": dict(counted[-1])})
        self.told("chi2", chi2(*counted))


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
    parser.add_argument("--turns", type=int, default=200, help="whose texts are compared, 16 at once")
    parser.add_argument("--eights", type=int, default=32, help="turns of each arm, 8 at once")
    parser.add_argument("--ones", type=int, default=8, help="turns of each arm, one at a time")
    parser.add_argument("--sampled", type=int, default=200)
    parser.add_argument("--drafts", type=int, default=DRAFTS, help="tokens of a draft")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results: dict[str, Any] = {"drafts": given.drafts}

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
        bench = Bench(Turns(given.model, 16, given.drafts), given.turns, told)
        bench.arm("off", given.turns, 16)
        bench.arm("hit", given.turns, 16, lambda n: bench.handed(n, True))
        if given.eights:
            bench.arms(min(given.eights, given.turns), 8)
            bench.resident(given.eights // 2, 8)
        if given.sampled:
            bench.sampled(given.sampled, 16)
        if given.ones:
            bench.arms(min(given.ones, given.turns), 1)
            bench.resident(given.ones // 2, 1)


if __name__ == "__main__":
    main()
