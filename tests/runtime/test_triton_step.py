"""The Triton kernel against the tensor operations, on the CPU by Triton's interpreter, on a GPU as it is."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from typing import Any

import pytest
import torch

from toolc.runtime import DecodeError, Decoder, Matcher

from .handmade import bundle
from .with_registers import with_registers

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(6))]
BACKENDS = ["torch", "fused"]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
missing = importlib.util.find_spec("triton") is None


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(INTERPRETED or torch.cuda.is_available(), reason="runs directly")
def test_in_the_interpreter() -> None:
    """A process of its own, since Triton reads the variable when kernels are declared."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
@pytest.mark.parametrize("extra", [0, 40])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_tensor_operations(seed: int, extra: int) -> None:
    pick = random.Random(seed)
    device = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
    made = [bundle(k) for k in pick.sample(KINDS, 3)]
    numbers = [0, 1, 2, -1]
    plain, fused = (
        Decoder(made, 4, device, bundle_of_row=numbers, check=False, history=4, backend=backend)
        for backend in ("torch", "fused")
    )
    dtypes = [torch.float32, torch.bfloat16, torch.float16]
    for turn in range(25):
        logits = torch.randn(4, 96 + extra, device=device).to(dtypes[turn % 3])
        if turn % 2:
            logits = logits.t().contiguous().t()
        want = plain.mask_(logits.clone())
        assert torch.equal(fused.mask_(logits), want)
        tokens = []
        for row, n in enumerate(numbers):
            live = [] if n < 0 or plain.error[row] else Matcher.at(plain.configuration(row)).allowed_tokens().tolist()
            tokens.append(pick.choice(live) if live and pick.random() < 0.93 else pick.randrange(-2, 110))
        for decoder in (plain, fused):
            decoder.advance_(torch.tensor(tokens, device=device))
        if pick.random() < 0.3:
            back = torch.minimum(plain.kept, torch.tensor([pick.randint(0, 3) for _ in numbers], device=device))
            for decoder in (plain, fused):
                decoder.rollback_(back)
        for row in range(4):
            if plain.error[row] or (numbers[row] >= 0 and plain.depth[row] > made[numbers[row]].meta["capacity"] - 6):
                for decoder in (plain, fused):
                    decoder.reset_rows([row])
        for name in ("state", "counter", "depth", "error", "length", "kept"):
            assert torch.equal(getattr(plain, name), getattr(fused, name)), name
        for row, n in enumerate(numbers):
            if n >= 0 and int(plain.state[row]):
                one, two = Matcher.at(plain.configuration(row)), Matcher.at(fused.configuration(row))
                assert isinstance(one, Matcher) and one.stack == two.stack


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_bits_drafts_and_checks_equal_the_tensor_operations(seed: int, limited: bool) -> None:
    pick = random.Random(seed)
    device = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
    made = [bundle(k) for k in ("brackets", "counted", "words")]
    numbers = [0, 1, 2, -1, 0]
    budget = [(made[n].min_tokens["start"] or 0) + 12 if limited and n >= 0 else None for n in numbers]
    plain, fused = (
        Decoder(made, 5, device, bundle_of_row=numbers, check=True, budget=budget, backend=name) for name in BACKENDS
    )
    for turn in range(14):
        assert torch.equal(plain.fill(), fused.fill())
        live = [
            [7] if n < 0 else Matcher.at(plain.configuration(row)).allowed_tokens().tolist()
            for row, n in enumerate(numbers)
        ]
        wanted = [
            [pick.choice(row) if pick.random() < 0.8 else pick.randrange(-1, 97) for _ in range(3)] for row in live
        ]
        parents = None if turn % 2 else torch.tensor([-1, 0, -1], device=device)
        drafts = [decoder.draft(torch.tensor(wanted, device=device), parents) for decoder in (plain, fused)]
        assert torch.equal(drafts[0].legal, drafts[1].legal) and torch.equal(drafts[0].length, drafts[1].length)
        assert torch.equal(drafts[0].bits, drafts[1].bits)
        bad = torch.tensor([1, 7, 1, 7, 1], device=device)
        errors = []
        for decoder in (plain, fused):
            try:
                decoder.advance_(bad)
            except DecodeError as error:
                errors.append(str(error))
        assert len(errors) in (0, 2) and len(set(errors)) <= 1
        if errors:
            tokens = torch.tensor([pick.choice(row) for row in live], device=device)
            for decoder in (plain, fused):
                decoder.advance_(tokens)
        for name in ("state", "counter", "depth", "error", "length", "kept"):
            assert torch.equal(getattr(plain, name), getattr(fused, name)), name
        deep = [row for row, n in enumerate(numbers) if n >= 0 and (plain.state[row] < 2 or plain.depth[row] > 8)]
        for decoder in (plain, fused):
            decoder.reset_rows(deep, budget=[budget[row] for row in deep])
    histories = torch.tensor([[4, 7, 5], [7, 7, 7], [7, 7, 7], [1, 1, 1], [4, 4, 7]], device=device)
    errors = []
    for decoder in (plain, fused):
        with pytest.raises(DecodeError) as caught:
            decoder.rebuild_(histories)
        errors.append(str(caught.value))
        decoder.check = False
        decoder.rebuild_(histories)
    assert errors[0] == errors[1]
    assert torch.equal(plain.state, fused.state) and torch.equal(plain.fill(), fused.fill())


def pair(rows: int, **options: Any) -> tuple[list[Decoder], str]:
    """The same decoder of brackets by both backends, and the device."""
    device = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
    made = [Decoder(bundle("brackets"), rows, device, check=False, backend=name, **options) for name in BACKENDS]
    return made, device


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
@pytest.mark.parametrize("history", [1, 2, 4, 16])
def test_rollback_by_the_whole_history_after_padding(history: int) -> None:
    text = [4, 4, 7, 6, 4, 7, 7, 5, 6, 7, 5, 6, 4, 5, 6, 7, 5, 3]  # [[a,[aa],a],[],a], end of turn
    decoders, device = pair(1, history=history)
    for decoder in decoders:
        for token in [*text, 3, 3]:
            decoder.advance_(torch.tensor([token], device=device))
        decoder.rollback_(history)
        one, two = (
            Matcher.at(decoder.configuration(0)),
            Matcher.from_tokens(bundle("brackets"), text[: len(text) - history]),
        )
        assert (one.state, one.counter, one.stack) == (two.state, two.counter, two.stack)
        assert not decoder.finished[0]


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
def test_tokens_by_their_strides_and_whole() -> None:
    """A column of a wider tensor; numbers that int32 would cut to tokens."""
    decoders, device = pair(4)
    for decoder in decoders:
        wide = torch.tensor([[4, 7], [7, 4], [2**32 + 4, 7], [-(2**32) + 4, 7]], device=device)
        decoder.advance_(wide[:, 0])
        assert decoder.error.tolist() == [False, False, True, True]
        assert decoder.depth.tolist() == [1, 0, 0, 0]


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
def test_large_budgets_and_expanded_logits() -> None:
    decoders, device = pair(2, budget=2**63)
    want = Matcher(bundle("brackets")).allowed_tokens().tolist()
    for decoder in decoders:
        logits = decoder.mask_(torch.zeros(2, 96, device=device))
        assert all(torch.isfinite(row).nonzero().view(-1).tolist() == want for row in logits)
        with pytest.raises(DecodeError, match="a place of its own"):
            decoder.mask_(torch.zeros(1, 96, device=device).expand(2, 96))


@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="no GPU, and not interpreted here")
@pytest.mark.parametrize("seed", range(3))
def test_registers_equal_the_tensor_operations(seed: int) -> None:
    """Registers of two and of four words, and a bundle without, with budgets; rows that are refused begin anew."""
    pick = random.Random(seed)
    device = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
    kinds = pick.sample(KINDS, 4)
    made = [with_registers(kind, seed, words) for kind, words in zip(kinds, (2, 4, 4))] + [bundle(kinds[3])]
    numbers = [0, 1, 2, 3, -1]
    plain, fused = (
        Decoder(made, 5, device, bundle_of_row=numbers, check=False, history=3, backend=name) for name in BACKENDS
    )
    seen = 0
    for turn in range(12):
        bits = plain.fill()
        assert torch.equal(fused.fill(), bits)
        logits = torch.randn(5, 96, device=device)
        assert torch.equal(fused.mask_(logits.clone()), plain.mask_(logits))
        allowed = [torch.isfinite(row).nonzero().view(-1).tolist() for row in logits]
        tokens = [pick.choice(row) if row and pick.random() < 0.9 else pick.randrange(96) for row in allowed]
        if turn % 4 == 0:
            drafts = [decoder.draft(torch.tensor(tokens, device=device).unsqueeze(1)) for decoder in (plain, fused)]
            assert torch.equal(drafts[0].legal, drafts[1].legal) and torch.equal(drafts[0].bits, drafts[1].bits)
        for decoder in (plain, fused):
            decoder.advance_(torch.tensor(tokens, device=device))
        assert torch.equal(plain.error, fused.error)
        if pick.random() < 0.3:
            back = torch.minimum(plain.kept, torch.tensor([pick.randint(0, 3) for _ in numbers], device=device))
            for decoder in (plain, fused):
                decoder.rollback_(back)
        for row, n in enumerate(numbers):
            over = n >= 0 and int(plain.state[row]) < 2
            if over or n >= 0 and plain.depth[row] > made[n].meta["capacity"] - 6:
                for decoder in (plain, fused):
                    decoder.reset_rows([row])
            elif n >= 0:
                one, two = plain.configuration(row), fused.configuration(row)
                assert (one.state, one.counter, one.stack) == (two.state, two.counter, two.stack)
                assert (one.register, one.registers) == (two.register, two.registers)
                seen += one.register != 0
    assert seen


@pytest.mark.slow
@pytest.mark.skipif(missing, reason="triton is not installed (it comes with torch for CUDA only)")
@pytest.mark.skipif(INTERPRETED, reason="the interpreter does not compile")
@pytest.mark.parametrize("registers", [0, 1, 3])
@pytest.mark.parametrize("name", ["advance_kernel", "fill_kernel", "mask_kernel"])
def test_compiles_for_a_gpu_that_is_not_here(name: str, registers: int) -> None:
    import inspect

    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from toolc.runtime.device import triton_step as fused

    kernel = getattr(fused, name)
    numbers = {"row_stride", "column_stride", "columns", "batch", "history", "size", "words", "width"}
    constants = {"breaks": 1, "closes": 1, "modes": 2, "block": fused.BLOCK_WORDS}
    constants |= {"registers": registers, "wide": registers, "lanes": 4 if registers else 0}
    others = {"logits": "*bf16", "error": "*u8", "out": "*i32"}
    others |= dict.fromkeys(("tokens", "length", "kept", "budget", "addresses"), "*i64")
    names = list(inspect.signature(kernel.fn).parameters)
    kinds = {n: "constexpr" if n in constants else "i32" if n in numbers else others.get(n, "*i32") for n in names}
    values = {(names.index(n),): value for n, value in constants.items() if n in names}
    assert compile(ASTSource(kernel, kinds, values), target=GPUTarget("cuda", 90, 32)).asm["cubin"]
