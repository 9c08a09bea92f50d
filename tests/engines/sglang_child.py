"""Run SGLang's engine on a CPU in a process of its own: waves of requests in, answers out, as lines of JSON.

    python -m tests.engines.sglang_child MODEL < waves > answers
    python -m tests.engines.sglang_child sglang.launch_server --model MODEL …       # that command

A wave is {"requests": [{"prompt", "params"}], "moves": [[from, to], ...]}: files are moved once the first request has
been answered, while others wait. Its answer is a list of {"text", "tokens", "reason"} or {"error"}.

Stands in    for two packages that this needs on a CPU only to be imported: torchvision, whose builds on the index need
             CUDA, and vllm._custom_ops, of which SGLang imports a kernel that it then does not call.
"""

from __future__ import annotations

import asyncio
import importlib.machinery
import json
import os
import sys
import types
from typing import Any

PARTS = ("transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional", "io", "ops", "ops.boxes")
VERSION = "0.27.0"
"""Of the stand-ins: transformers compares that of torchvision."""


class _Anything:
    """Whatever is imported from a package that is not used."""

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Module(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def stand_in() -> None:
    """Put modules in the place of those packages. SGLang's own processes import this module's parent first, too."""
    names = ["torchvision", *(f"torchvision.{part}" for part in PARTS), "vllm", "vllm._custom_ops"]
    for name in names:
        module = _Module(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__dict__["__version__"] = VERSION
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


async def _one(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = await engine.async_generate(request["prompt"], request["params"])
    except ValueError as error:  # how the engine tells that a request was refused
        return {"error": str(error)}
    reason = answer["meta_info"]["finish_reason"]
    if reason["type"] == "abort":
        return {"error": reason["message"]}
    return {"text": answer["text"], "tokens": answer["output_ids"], "reason": reason["type"]}


async def _wave(engine: Any, wave: dict[str, Any]) -> list[dict[str, Any]]:
    tasks = [asyncio.ensure_future(_one(engine, request)) for request in wave["requests"]]
    if wave.get("moves"):
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for old, new in wave["moves"]:
            os.replace(old, new)
    return list(await asyncio.gather(*tasks))


def serve(arguments: list[str]) -> None:
    """The command `sglang.launch_server`: what its module does where it is the main one."""
    from sglang.launch_server import load_plugins, prepare_server_args, run_server

    load_plugins()
    run_server(prepare_server_args(arguments))


def main() -> int:
    if sys.argv[1] == "sglang.launch_server":
        serve(sys.argv[2:])
        return 0
    import sglang

    out = os.dup(1)
    os.dup2(2, 1)  # what the engine prints
    engine = sglang.Engine(
        model_path=sys.argv[1],
        device="cpu",
        dtype="float32",  # of bfloat16 many CPUs have no fast way
        attention_backend="torch_native",
        sampling_backend="pytorch",
        grammar_backend="toolc",
        disable_cuda_graph=True,
        max_running_requests=8,
        max_total_tokens=12_000,
        context_length=2_048,
        log_level="warning",
    )
    try:
        loop = asyncio.get_event_loop()
        with os.fdopen(out, "w") as answers:
            for line in sys.stdin:
                print(json.dumps(loop.run_until_complete(_wave(engine, json.loads(line)))), file=answers, flush=True)
    finally:
        engine.shutdown()
    return 0


stand_in()
if __name__ == "__main__":
    sys.exit(main())
