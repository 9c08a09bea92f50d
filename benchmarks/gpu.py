"""Everything that is measured on a GPU, in one command: launches, synchronisation, CUDA graphs, step times, a model.

    python -m benchmarks.gpu tools_specs/weather.json --tokenizer ../shared/tokenizers/llama3.json

Prints JSON lines. For each batch size: kernels launched by mask + advance (by the profiler), the time of a step eager
and in a CUDA graph, and the bytes that it must move: the logits written once where they are masked, one row of bits
read per row; and the time of a draft of four tokens with its masks. A step runs under
`torch.cuda.set_sync_debug_mode("error")`, so that a synchronisation ends the benchmark.
Then tokens per second of a model, with the constraint and without. `--device cpu` runs the same code where there is no
GPU, without what only CUDA has; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from toolc.compiler import compile_tools
from toolc.runtime import Bundle, Decoder

from .model import compare, llama


def walked(decoder: Decoder, steps: int) -> torch.Tensor:
    """int64 [steps, B]: tokens of a random walk of each row; the decoder is where it was."""
    tokens = []
    for _ in range(steps):
        logits = torch.rand(decoder.batch_size, decoder.arena.size, device=decoder.device)
        tokens.append(decoder.mask_(logits).argmax(-1))
        decoder.advance_(tokens[-1])
    decoder.reset_rows()
    return torch.stack(tokens)


def timed(call: Callable[[], Any], repeat: int, cuda: bool) -> float:
    """Median microseconds of a call; on the device, by events around ten calls."""
    spent = []
    for _ in range(repeat):
        if cuda:
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            for _ in range(10):
                call()
            last.record()
            last.synchronize()
            spent.append(first.elapsed_time(last) * 100)
        else:
            begin = time.perf_counter()
            call()
            spent.append((time.perf_counter() - begin) * 1e6)
    return round(statistics.median(spent), 2)


def launches(call: Callable[[], Any]) -> int:
    """Kernels that a call launches on the GPU."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    return sum(1 for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA)


def captured(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """A CUDA graph of a call, after three that warm it up."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def measure(bundle: Bundle, batch: int, device: torch.device, backend: str, repeat: int) -> dict[str, Any]:
    """One batch size: mask of bfloat16 logits + advance."""
    cuda = device.type == "cuda"
    decoder = Decoder(bundle, batch, device, check=False, backend=backend)
    tokens = walked(decoder, 4)
    for row in tokens[:2]:
        decoder.advance_(row)
    logits = torch.zeros(batch, bundle.vocab.size, dtype=torch.bfloat16, device=device)
    token = tokens[2].clone()
    held = decoder.state.clone(), decoder.counter.clone(), decoder.depth.clone()

    def step() -> None:
        decoder.step_(token, logits)
        for part, value in zip((decoder.state, decoder.counter, decoder.depth), held, strict=True):
            part.copy_(value)  # the same step each time; three small copies, counted in

    def bare() -> None:
        decoder.step_(token, logits)

    step()
    moved = logits.nbytes + batch * bundle.vocab.words * 4
    found: dict[str, Any] = {"batch": batch, "backend": decoder.backend, "dtype": "bfloat16", "bytes": moved}
    found["eager_us"] = timed(step, repeat, cuda)
    drafted = tokens[2:3].T.expand(-1, 4).contiguous()
    found["draft_of_4_us"] = timed(lambda: decoder.draft(drafted), repeat, cuda)
    if cuda:
        torch.cuda.set_sync_debug_mode("error")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        found["launches"] = launches(bare)
        graph = captured(step)
        found["graph_us"] = timed(graph.replay, repeat, cuda)
        source = torch.empty(moved // 2, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        found["copy_of_as_many_bytes_us"] = timed(lambda: target.copy_(source), repeat, cuda)
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", help="or a bundle with its vocabulary (toolc compile --standalone)")
    parser.add_argument("--tokenizer", help="a tokenizer file; the built-in one if absent")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256, 1024])
    parser.add_argument("--backends", nargs="+", default=["auto"], help="auto, fused, torch")
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--model-batches", type=int, nargs="*", default=[1, 64])
    a = parser.parse_args(arguments)
    device = torch.device(a.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here; --device cpu tries the code")
    bundle = Bundle.open(a.spec) if a.spec.endswith(".toolc") else compile_tools(a.spec, a.tokenizer).bundle
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    print(json.dumps({"device": name, "torch": torch.__version__, "vocabulary": bundle.vocab.size}))
    for backend in a.backends:
        for batch in a.batches:
            print(json.dumps(measure(bundle, batch, device, backend, a.repeat)), flush=True)
    if a.model_batches:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        model = llama(bundle.vocab.size, a.layers, a.hidden, a.steps, device, dtype)
        for batch in a.model_batches:
            about = {"model": sum(p.numel() for p in model.parameters()), "batch": batch}
            print(json.dumps({**about, **compare(model, bundle, batch, a.steps, 5)}), flush=True)


if __name__ == "__main__":
    main()
