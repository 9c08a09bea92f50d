"""The constraint as a module: equal to the specification eagerly, compiled, exported, and through AOTInductor."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from toolc.runtime import DecodeError
from toolc.runtime.adapters.constraint import Constraint
from toolc.runtime.reference import Sequence

from .handmade import bundle

KINDS = ["brackets", "counted", "words"]
ROWS = [0, 1, 2, -1, 0]
# Nearly all of what AOTInductor takes is the C++ compiler, for headers and vector code.
QUICK = {
    "aot_inductor.precompile_headers": False,
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.vec_isa_ok": False,
}
# Operations that look at data: guards, and results of a size that the data tell.
READS = ("assert_scalar", "assert_async", "item", "scalar_dense", "sym_", "nonzero", "masked_select")


def walk(call: Callable[..., Any], module: Constraint, size: int, steps: int = 14) -> None:
    pick = random.Random(1)
    state = module.start(ROWS)
    oracles = [None if n < 0 else Sequence.start(bundle(KINDS[n])) for n in ROWS]
    tokens = [-1] * len(ROWS)
    for _ in range(steps):
        logits = torch.randn(len(ROWS), size)
        masked, state = call(logits, torch.tensor(tokens), state)
        for row, oracle in enumerate(oracles):
            if oracle is None:
                assert torch.equal(masked[row], logits[row])
                continue
            live = sorted(oracle.mask())
            assert torch.isfinite(masked[row]).nonzero().view(-1).tolist() == live
            assert torch.equal(masked[row, live], logits[row, live])
            if oracle.bundle.tables.modes == 1 and len(oracle.stack) > 20:
                live = [t for t in live if b"[" not in oracle.bundle.vocab.token(t)] or live
            tokens[row] = pick.choice(live)
            if oracle.state != 1:
                assert oracle.advance(tokens[row])


@pytest.mark.parametrize("extra", [0, 7])
def test_eager(extra: int) -> None:
    module = Constraint([bundle(k) for k in KINDS])
    walk(module, module, 96 + extra, 40)


def test_full_graph() -> None:
    """No data-dependent guard and no graph break: the tracer of torch.compile takes it whole."""
    module = Constraint([bundle(k) for k in KINDS])
    walk(torch.compile(module, fullgraph=True, backend="aot_eager"), module, 96)


def exported(module: Constraint) -> torch.export.ExportedProgram:
    example = (torch.zeros(len(ROWS), 96), torch.zeros(len(ROWS), dtype=torch.int64), module.start(ROWS))
    return torch.export.export(module, example)


def test_export_and_save(tmp_path: Path) -> None:
    module = Constraint([bundle(k) for k in KINDS])
    torch.export.save(exported(module), tmp_path / "constraint.pt2")
    walk(torch.export.load(tmp_path / "constraint.pt2").module(), module, 96)


def test_export_of_the_whole_step_with_budgets() -> None:
    """Mask, budget and advance in one graph of tensor operations; texts through it end within their budgets."""
    module = Constraint([bundle(k) for k in KINDS], budgets=True)
    rows, room = [0, 1, 2, -1, 0, 2], [0, 3, 9, None, 5, 1]
    least = [bundle(KINDS[n]).min_tokens["start"] if n >= 0 else None for n in rows]
    budgets = [None if need is None or more is None else need + more for need, more in zip(least, room, strict=True)]
    state = module.start(rows, budget=budgets)
    example = (torch.zeros(len(rows), 96), torch.zeros(len(rows), dtype=torch.int64), state)
    program = torch.export.export(module, example)
    called = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert called and not program.range_constraints
    assert not [name for name in called if any(word in name for word in READS)]
    step, pick = program.module(), random.Random(3)
    oracles = [
        None if n < 0 else Sequence.start(bundle(KINDS[n]), budget=b) for n, b in zip(rows, budgets, strict=True)
    ]
    tokens = [-1] * len(rows)
    for _ in range(max(b for b in budgets if b is not None)):
        masked, state = step(torch.zeros(len(rows), 96), torch.tensor(tokens), state)
        for row, oracle in enumerate(oracles):
            if oracle is not None:
                live = sorted(oracle.mask_in_budget())
                assert torch.isfinite(masked[row]).nonzero().view(-1).tolist() == live
                tokens[row] = pick.choice(live)
                if oracle.state != 1:
                    assert oracle.advance(tokens[row])
    assert all(oracle is None or oracle.state == 1 for oracle in oracles)


@pytest.mark.slow
def test_aot_inductor(tmp_path: Path) -> None:
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("no C++ compiler here, AOTInductor needs one")
    module = Constraint([bundle(k) for k in KINDS])
    path = torch._inductor.aoti_compile_and_package(
        exported(module), package_path=str(tmp_path / "constraint.pt2"), inductor_configs=QUICK
    )
    walk(torch._inductor.aoti_load_package(path), module, 96)


def test_misuse() -> None:
    with pytest.raises(DecodeError, match="needs a bundle"):
        Constraint([])
    module = Constraint(bundle("brackets"))
    for rows, entry in (([1], "start"), ([0], "nowhere"), ([-3], "start"), ([-2], "nowhere")):
        with pytest.raises(DecodeError, match="no such bundle or entry"):
            module.start(rows, entry)
    state = module.start([0, 0])
    masked, state = module(torch.zeros(2, 96), torch.tensor([6, 4]), state)
    assert state[1].tolist()[0] == 0
    assert torch.isfinite(masked[0]).nonzero().view(-1).tolist() == [0, 3]


@pytest.mark.parametrize("budget", [2**31 - 1, 2**31, 2**32, 2**32 + 3, 2**63, 2**70])
def test_budgets_past_int32_leave_the_masks_whole(budget: int) -> None:
    module = Constraint(bundle("brackets"), budgets=True)
    state = module.start([0, 0], budget=[budget, None])
    for token in (-1, 4, 4, 7):
        masked, state = module(torch.zeros(2, 96), torch.tensor([token, token]), state)
        assert torch.equal(masked[0], masked[1])
