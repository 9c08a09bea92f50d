"""The vLLM processors, driven by vLLM's own loader, contexts and batch updates; its slots are small fakes."""

from __future__ import annotations

import functools
import importlib.util
import os
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from toolc.compiler import Options, compile_tools
from toolc.runtime import Decoder
from toolc.runtime.reference import Sequence

from .handmade import bundle
from .peers import peer

interface = peer("vllm", "vllm.v1.worker.gpu.sample.logits_processor")
state = peer("vllm", "vllm.v1.sample.logits_processor.state")
v1 = peer("vllm", "vllm.v1.sample.logits_processor")
VLLMValidationError = peer("vllm", "vllm.exceptions").VLLMValidationError
SamplingParams = peer("vllm", "vllm.sampling_params").SamplingParams

from toolc.runtime.adapters import vllm as adapter  # noqa: E402
from toolc.runtime.adapters.admitted import Admitted  # noqa: E402
from toolc.runtime.adapters.choice import ADMITTED, Choice, Shelf  # noqa: E402
from toolc.runtime.adapters.vllm import Budget, Gate, OnDevice, OnHost, ToolcLogitsProcessor  # noqa: E402
from toolc.runtime.adapters.vllm_config import PROCESSOR  # noqa: E402
from toolc.runtime.adapters.vllm_hooks import name_processor  # noqa: E402

SIZE, PADDED = 96, 104
ENDS = {0, 3}
FUSED = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="needs triton, and TRITON_INTERPRET=1 set before it is loaded",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bundles of the front end lie; worker and front end are one process here, with two shelves."""
    monkeypatch.setenv("TOOLC_BUNDLES", str(tmp_path))
    monkeypatch.setenv("TOOLC_ADMITTED", str(tmp_path / "admitted"))
    monkeypatch.setattr(adapter, "_SHELF", Shelf(copies=Admitted()))
    for kind in ("brackets", "counted", "words"):
        bundle(kind).write(tmp_path / f"{kind}.toolc", standalone=True)
    return tmp_path


class Tokenizer:
    """The tokenizer of the handmade bundles, as an engine has it."""

    eos_token_id = 0

    def __len__(self) -> int:
        return SIZE

    def convert_ids_to_tokens(self, ids: list[int]) -> list[bytes | str]:
        vocab = bundle("words").vocab
        names = {token: name for name, token in vocab.special.items()}
        return [names.get(token) or vocab.token(token) for token in ids]


def config(**more: Any) -> Any:
    """An engine's config."""
    model = SimpleNamespace(
        runner_type="generate", logits_processors=[PROCESSOR], return_sampling_mask=False, max_model_len=128,
        get_vocab_size=lambda: PADDED, try_get_generation_config=lambda: {"eos_token_id": sorted(ENDS)},
    )  # fmt: skip
    known: dict[str, Any] = {"model_config": model, "speculative_config": None, "use_v2_model_runner": True, **more}
    return SimpleNamespace(**known)


def admit(given: Any, tokenizer: Any = None) -> Any:
    """The parameters of a request after a front end has admitted it."""
    Gate(config(), lambda: tokenizer or Tokenizer()).admit(given)
    given._all_stop_token_ids.update(ENDS)
    return given


def params(kind: str | None, **more: Any) -> Any:
    """Admitted; without a budget where `max_tokens` is too small for one."""
    if kind is None:
        return admit(SamplingParams(**more))
    given: dict[str, Any] = {"toolc_bundle": kind}
    if more.get("max_tokens", 16) < (bundle(kind).min_tokens["start"] or 0):
        given["toolc_budget"] = 0
    return admit(SamplingParams(extra_args=given, **more))


class Buffer:
    """As vLLM's buffers: what the host writes (`np`) and what the device reads (`gpu`)."""

    def __init__(self, *shape: int) -> None:
        self.gpu = torch.zeros(shape, dtype=torch.int32)
        self.np = self.gpu.numpy()


class Runner:
    """The slots of model runner V2 and its order of calls: v1/worker/gpu, states.py and model_runner.py."""

    def __init__(self, slots: int, drafts: int) -> None:
        self.slots, self.drafts = slots, drafts
        self.states = SimpleNamespace(
            device=torch.device("cpu"), max_num_reqs=slots, vocab_size=PADDED, all_token_ids=Buffer(slots, 128),
            prompt_len=Buffer(slots), prefill_len=Buffer(slots), total_len=Buffer(slots),
        )  # fmt: skip
        config = SimpleNamespace(
            speculative_config=SimpleNamespace(num_speculative_tokens=drafts) if drafts else None, model_config=None
        )
        (self.processor,) = interface.build_custom_logits_processors(
            config, self.states, False, ["toolc.runtime.adapters.vllm:ToolcLogitsProcessor"]
        )[-1:]
        self.free = list(range(slots))
        self.needs = np.zeros(slots, dtype=bool)

    def add(self, given: Any, prompt: list[int], output: list[int]) -> int:
        slot, s = self.free.pop(), self.states
        s.prompt_len.np[slot] = len(prompt)
        s.prefill_len.np[slot] = s.total_len.np[slot] = len(prompt) + len(output)
        s.all_token_ids.np[slot, : len(prompt) + len(output)] = prompt + output
        self.needs[slot] = self.processor.add_request(slot, given)
        return slot

    def logits(self, batch: list[tuple[int, list[int]]]) -> list[torch.Tensor]:
        """Masked logits of each request of (slot, drafts): one row for it and one for each draft."""
        s = self.states
        self.processor.apply_staged_writes()
        rows = [(slot, j) for slot, drafts in batch for j in range(len(drafts) + 1)]
        fed = [
            s.all_token_ids.np[slot, s.total_len.np[slot] - 1] if j == 0 else dict(batch)[slot][j - 1]
            for slot, j in rows
        ]
        order = np.array([slot for slot, _ in batch], dtype=np.int32)
        ctx = interface.LogitsContext(
            expanded_idx_mapping=torch.tensor([slot for slot, _ in rows], dtype=torch.int32),
            idx_mapping=torch.from_numpy(order),
            idx_mapping_np=order,
            expanded_local_pos=torch.tensor([j for _, j in rows], dtype=torch.int32),
            input_ids=torch.tensor(np.array(fed), dtype=torch.int32),
            pos=torch.tensor([int(s.total_len.np[slot]) - 1 + j for slot, j in rows]),
            seq_lens_upper_bound_np=s.total_len.np[order],
        )
        logits = torch.zeros(len(rows), PADDED)
        if self.needs[order].any():
            logits = self.processor.apply(logits, ctx)
        return list(logits.split([len(drafts) + 1 for _, drafts in batch]))

    def commit(self, slot: int, tokens: list[int]) -> None:
        s = self.states
        start = int(s.total_len.np[slot])
        s.all_token_ids.np[slot, start : start + len(tokens)] = tokens
        s.total_len.np[slot] += len(tokens)


def after(kind: str, tokens: list[int], most: int | None) -> Sequence | None:
    """The specification after the tokens of a request of `max_tokens`, which are its budget where it can be kept."""
    need = bundle(kind).min_tokens["start"]
    assert need is not None
    budget = most if most is not None and most >= need else None
    oracle = Sequence.start(bundle(kind), budget=budget)
    for token in tokens:
        if oracle.state != 1 and not oracle.advance(token):
            return None
    return oracle


def check(row: torch.Tensor, kind: str | None, tokens: list[int], most: int | None = 16) -> list[int]:
    """The row allows what the specification allows after the tokens; returns it."""
    found = torch.isfinite(row).nonzero().view(-1).tolist()
    if kind is None:
        assert found == list(range(PADDED))
        return found
    oracle = after(kind, tokens, most)
    assert found == ([0, 3] if oracle is None else sorted(oracle.mask_in_budget())), (kind, tokens, most)
    return found


@pytest.mark.parametrize("backend", ["torch", pytest.param("fused", marks=FUSED)])
@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("seed", range(3))
def test_model_runner_v2(seed: int, drafts: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests join, are preempted, come back in other slots and finish; drafts of any kind are accepted in part.

    Those with budgets end within them.
    """
    monkeypatch.setattr("toolc.runtime.adapters.vllm.Decoder", functools.partial(Decoder, backend=backend))
    pick = random.Random(seed)
    runner = Runner(4, drafts)
    assert isinstance(runner.processor, OnDevice)
    running: dict[int, tuple[str | None, list[int], list[int], int]] = {}
    waiting: list[tuple[str | None, list[int], list[int], int]] = []
    resumed = ended = 0
    for _ in range(40):
        while runner.free and pick.random() < 0.7:
            if waiting and pick.random() < 0.7:
                kind, prompt, output, most = waiting.pop()
                resumed += bool(output)
            else:
                kind, output = pick.choice(["brackets", "counted", "words", None]), []
                prompt = [pick.randrange(SIZE) for _ in range(pick.randint(1, 5))]
                most = pick.choice([1, 5, 12, 100])
            running[runner.add(params(kind, max_tokens=most), prompt, output)] = (kind, prompt, output, most)
        if not running:
            continue
        batch = [(slot, []) for slot in running]
        pick.shuffle(batch)
        if drafts:
            batch = [
                (slot, [pick.choice([7, 4, 8, 11, 30]) for _ in range(pick.randint(0, drafts))]) for slot, _ in batch
            ]
        for (slot, proposed), rows in zip(batch, runner.logits(batch), strict=True):
            kind, _, output, most = running[slot]
            said: list[int] = []
            for j, row in enumerate(rows):
                live = check(row, kind, output + proposed[:j], most)
                if len(said) == j:  # all before were accepted
                    short = after(kind, output + said, most) if kind else None
                    live = (
                        live if short is None or len(short.stack) < 20 else [t for t in live if t == 6 or t < 4] or live
                    )
                    keep = j < len(proposed) and proposed[j] in live and pick.random() < 0.8
                    said.append(proposed[j] if keep else pick.choice(live) % SIZE)
                    if not keep:
                        break
            runner.commit(slot, said)
            output += said
        for slot, (kind, _, output, most) in list(running.items()):
            if len(output) > 20 or pick.random() < 0.1:
                waiting.append(running.pop(slot)) if len(output) <= 20 else running.pop(slot)
                runner.free.append(slot)
            if kind and len(output) >= most >= (bundle(kind).min_tokens["start"] or 0):
                oracle = after(kind, output[:most], None)
                assert oracle is not None and (oracle.state == 1 or 0 in oracle.mask())
                ended += 1
    assert resumed and ended


def test_bundles_make_place_in_v2(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit for one bundle, the second one waits for the first one's request to go; a third request ends."""
    from toolc.runtime.device.relocate import device_bytes

    most = max(device_bytes(bundle(kind))["total_bytes"] for kind in ("brackets", "words"))
    monkeypatch.setenv("TOOLC_DEVICE_BYTES", str(most + 100))
    runner = Runner(2, 0)
    slot = runner.add(params("brackets"), [5], [])
    check(runner.logits([(slot, [])])[0][0], "brackets", [])
    runner.free.append(slot)
    other = runner.add(params("words"), [5], [])
    check(runner.logits([(other, [])])[0][0], "words", [])
    third = runner.add(params("brackets"), [5], [])
    rows = runner.logits([(other, []), (third, [])])
    check(rows[0][0], "words", [])
    assert torch.isfinite(rows[1][0]).nonzero().view(-1).tolist() == sorted(ENDS)
    monkeypatch.setenv("TOOLC_DEVICE_BYTES", "100")
    with pytest.raises(ValueError, match="too large for the device"):
        params("words")


@pytest.mark.parametrize("drafts", [0, 2])
def test_a_copy_that_is_gone_ends_one_request_in_v2(folder: Path, drafts: int) -> None:
    """The other requests, constrained and free, go on."""
    runner = Runner(3, drafts)
    asked = [params("brackets"), params("words"), params(None)]
    adapter._SHELF._copies._open.clear()  # type: ignore[union-attr]
    (folder / "admitted" / f"{asked[0].extra_args[ADMITTED]}.toolc").unlink()
    gone, held, free = (runner.add(given, [5], []) for given in asked)
    rows = runner.logits([(gone, [7] * drafts), (held, []), (free, [])])
    assert all(torch.isfinite(row).nonzero().view(-1).tolist() == sorted(ENDS) for row in rows[0])
    check(rows[1][0], "words", [])
    check(rows[2][0], None, [])
    runner.free.append(gone)
    again = runner.add(params("words"), [5], [])  # the slot begins anew
    check(runner.logits([(again, [])])[0][0], "words", [])


def test_a_copy_that_is_gone_ends_one_request_in_v1(folder: Path) -> None:
    made = ToolcLogitsProcessor(config(), torch.device("cpu"), False)
    asked = [params("brackets"), params("words"), params(None)]
    adapter._SHELF._copies._open.clear()  # type: ignore[union-attr]
    (folder / "admitted" / f"{asked[0].extra_args[ADMITTED]}.toolc").unlink()
    builder = state.BatchUpdateBuilder(added=[(n, given, [1], []) for n, given in enumerate(asked)])
    made.update_state(builder.get_and_reset(3))
    rows = made.apply(torch.zeros(3, PADDED))
    assert torch.isfinite(rows[0]).nonzero().view(-1).tolist() == sorted(ENDS)
    check(rows[1], "words", [])
    check(rows[2], None, [])


def test_what_was_admitted_outlives_its_file(folder: Path) -> None:
    """Renamed, replaced, overwritten: the worker opens what the front end admitted."""
    first = params("words")
    (folder / "words.toolc").write_bytes(b"no bundle")
    second = params("counted")
    os.replace(folder / "brackets.toolc", folder / "counted.toolc")
    third = params("counted")
    assert second.extra_args[ADMITTED] != third.extra_args[ADMITTED]
    adapter._SHELF._copies._open.clear()  # type: ignore[union-attr]  # as another process begins
    for given, kind in ((first, "words"), (second, "counted"), (third, "brackets")):
        choice = adapter.admitted(given)
        assert choice is not None and choice.bundle.digest == bundle(kind).digest
    with pytest.raises(ValueError, match=r"words\.toolc"):
        params("words")


@pytest.mark.parametrize("ends", [[0], [3], [0, 3, 5]])
def test_other_ends_of_turn_are_refused(ends: list[int]) -> None:
    """Whichever bundle comes first."""

    class Other(Tokenizer):
        eos_token_id = ends[0]

    stub = config()
    stub.model_config.try_get_generation_config = lambda: {"eos_token_id": ends}
    with pytest.raises(ValueError, match="other ends of turn"):
        Gate(stub, Other).admit(SamplingParams(extra_args={"toolc_bundle": "words"}))
    params("words")


def test_ends_of_turn_are_read_once() -> None:
    """Each reading of an engine's generation config opens its file."""
    read: list[int] = []
    stub = config()
    stub.model_config.try_get_generation_config = lambda: read.append(1) or {"eos_token_id": sorted(ENDS)}
    gate = Gate(stub, Tokenizer)
    assert not read  # the engine's tokenizer may not be there yet
    for _ in range(3):
        gate.admit(SamplingParams(extra_args={"toolc_bundle": "words"}))
    assert len(read) == 1


def test_another_tokenizer_is_refused() -> None:
    class Other(Tokenizer):
        def convert_ids_to_tokens(self, ids: list[int]) -> list[bytes | str]:
            pieces = super().convert_ids_to_tokens(ids)
            return [*pieces[:9], b"other", *pieces[10:]]

    with pytest.raises(ValueError, match="another tokenizer; found token 9"):
        admit(SamplingParams(extra_args={"toolc_bundle": "words"}), Other())
    with pytest.raises(ValueError, match="no tokenizer to check"):
        stub = config()
        stub.model_config.try_get_generation_config = lambda: {"eos_token_id": [0, 3]}
        Gate(stub, lambda: None).admit(SamplingParams(extra_args={"toolc_bundle": "words"}))


@pytest.mark.parametrize(("v2", "drafts", "runs"), [(True, 0, 1), (True, 3, 1), (False, 0, 1), (False, 3, 0)])
def test_the_processor_is_named_once_where_it_runs(v2: bool, drafts: int, runs: int) -> None:
    speculative = SimpleNamespace(num_speculative_tokens=drafts) if drafts else None
    given = config(speculative_config=speculative, use_v2_model_runner=v2)
    for names in ([], None, [PROCESSOR], ["a:B", PROCESSOR, PROCESSOR]):
        given.model_config.logits_processors = names
        name_processor(given)
        name_processor(given)
        if runs:
            assert given.model_config.logits_processors.count(PROCESSOR) == 1
    gate = Gate(given, Tokenizer)
    if runs:
        gate.admit(SamplingParams(extra_args={"toolc_bundle": "words"}))
    else:
        with pytest.raises(ValueError, match="V1 runner builds no custom logits processors"):
            gate.admit(SamplingParams(extra_args={"toolc_bundle": "words"}))
    gate.admit(SamplingParams())


def tail(kind: str, tokens: list[int], most: int) -> list[int] | None:
    """What V1 allows in prose where the budget leaves the end of turn only: what the text is whole after, and it."""
    oracle = after(kind, tokens, most)
    if oracle is None or oracle.stack or oracle.state == 1 or not oracle.mask_in_budget() <= ENDS:
        return None
    free = after(kind, tokens, None)
    assert free is not None
    found = []
    for token in sorted(free.mask()):
        twin = free.copy()
        if token in ENDS or (twin.advance(token) and twin.bound() == 1):
            found.append(token)
    return found if any(bundle(kind).vocab.token(token).isalpha() for token in found) else None


@pytest.mark.parametrize("seed", range(3))
def test_v1(seed: int) -> None:
    """Batch updates as vLLM's own builder makes them: removed, added, moved and swapped."""
    pick = random.Random(seed)
    (processor,) = v1._load_logitsprocs_by_fqcns(["toolc.runtime.adapters.vllm:ToolcLogitsProcessor"])
    made = processor(None, torch.device("cpu"), False)
    assert isinstance(made, OnHost) and not made.is_argmax_invariant()
    builder = state.BatchUpdateBuilder()
    rows: list[tuple[str | None, list[int], int]] = []
    for _ in range(60):
        update = None
        if pick.random() < 0.5:
            removed = [i for i in range(len(rows)) if pick.random() < 0.3]
            for i in removed:
                builder.removed_append(i)
            empty = sorted(removed)
            while len(rows) - len(empty) < 5 and pick.random() < 0.6:
                index = empty.pop(0) if empty else len(rows)
                if empty or index < len(rows):
                    builder.pop_removed()
                entry = (pick.choice(["brackets", "counted", None]), list[int](), pick.choice([1, 5, 12]))
                rows[index : index + 1] = [entry]
                builder.added.append((index, params(entry[0], max_tokens=entry[2]), [1, 2], entry[1]))
            while empty:  # as InputBatch.condense
                last = len(rows) - 1
                if last in empty:
                    empty.remove(last)
                    rows.pop()
                    continue
                index = builder.pop_removed()
                empty.remove(index)
                builder.moved.append((last, index, v1.MoveDirectionality.UNIDIRECTIONAL))
                rows[index] = rows.pop()
            if len(rows) > 1 and pick.random() < 0.5:
                builder.moved.append((0, len(rows) - 1, v1.MoveDirectionality.SWAP))
                rows[0], rows[-1] = rows[-1], rows[0]
            update = builder.get_and_reset(len(rows))
        made.update_state(update)
        if not rows:
            continue
        masked = made.apply(torch.zeros(len(rows), PADDED))
        for row, (kind, output, most) in enumerate(rows):
            if len(output) >= most:  # vLLM has cut it
                output.append(0)
                continue
            live = torch.isfinite(masked[row]).nonzero().view(-1).tolist()
            prose = None if kind is None else tail(kind, output, most)
            if prose is None:
                live = check(masked[row], kind, output, most)
            else:
                assert live == prose
            if len(output) > 12:
                live = [t for t in live if t in (0, 3, 6, 7)] or live
            output.append(pick.choice(live))


INTEGER = {"type": "integer", "minimum": 10, "maximum": 9999}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(
    ("format", "entry", "text", "is_prose"),
    [
        (None, "auto", "Once upon a", True),
        (None, "auto", CALL, True),  # prose may follow
        (None, "required", CALL, False),
        (None, "required", CALL + "\n", False),
        (INTEGER, "response", "12", False),
        ({"type": "object"}, "response", "{}", False),
    ],
)
def test_only_prose_goes_on_where_vllm_cuts(format: Any, entry: str, text: str, is_prose: bool) -> None:
    """Calls and responses end with the end of turn, where the budget leaves one token, though more could follow."""
    made = compile_tools([TOOL], "builtin", options=Options(protocol="hermes", response=format)).bundle
    of_text = {made.vocab.token(token): token for token in range(made.vocab.size)}
    output = []
    for part in re.split("(</?tool_call>)", text):
        special = made.vocab.special.get(part)
        output += [of_text[bytes([byte])] for byte in part.encode()] if special is None else [special]
    row = adapter._Row(Choice(made, entry), Budget(len(output) + 1, True), output, SamplingParams())
    row.follow()
    row.fill(mask := np.zeros(made.vocab.words, dtype=np.uint32))
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little").nonzero()[0]
    ends = set(map(int, made.tables.end_of_turn_tokens))
    assert row.ends is None and not row.refused and ends <= set(map(int, bits))
    assert (len(bits) > len(ends)) is is_prose
    if is_prose:
        assert of_text[b"s"] in bits


def test_refused_requests() -> None:
    validate = interface.build_custom_logits_processors_params_validator(
        ["toolc.runtime.adapters.vllm:ToolcLogitsProcessor"]
    )
    validate(params(None))
    validate(params("words"))
    with pytest.raises(VLLMValidationError, match="plugin `toolc` of vLLM is not loaded"):
        validate(SamplingParams(extra_args={"toolc_bundle": "words"}))
    for given, message in (
        (SamplingParams(extra_args={"toolc_bundle": "nothing"}), "no such bundle"),
        (SamplingParams(extra_args={"toolc_bundle": "../words"}), "without a folder"),
        (SamplingParams(extra_args={"toolc_bundle": "words", "toolc_entry": "x"}), "no such entry"),
        (SamplingParams(extra_args={"toolc_tool": "words"}), "no such argument"),
        (SamplingParams(extra_args={ADMITTED: "0" * 32}), "names no bundle"),
        (SamplingParams(extra_args={"toolc_bundle": "words"}, min_tokens=3), "min_tokens cannot be used together"),
        (SamplingParams(extra_args={"toolc_bundle": "counted", "toolc_budget": 1}), "at least 3"),
        (SamplingParams(extra_args={"toolc_bundle": "counted", "toolc_budget": 9}, max_tokens=2), "at least 3"),
        (SamplingParams(extra_args={"toolc_bundle": "counted", "toolc_budget": "-1"}), "toolc_budget is no number"),
        (SamplingParams(extra_args={"toolc_bundle": "counted", "toolc_tools": 3}), "are no names"),
        (SamplingParams(extra_args={"toolc_bundle": "counted", "toolc_tools": "a, b"}), "no such tool"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            admit(given)
        assert "brackets" not in str(caught.value)


def test_the_engines_own_structured_output_is_off() -> None:
    """What follows from `tools` and `response_format` gives way; what was asked for by itself is refused."""
    from vllm.sampling_params import StructuredOutputsParams

    for own in ({"json": {"type": "object"}}, {"json_object": True}, {"structural_tag": "{}"}):
        assert params("words", structured_outputs=StructuredOutputsParams(**own)).structured_outputs is None
    free = SamplingParams(structured_outputs=StructuredOutputsParams(json_object=True))
    assert admit(free).structured_outputs is not None
    for own in ({"regex": "a"}, {"choice": ["a"]}, {"grammar": "root ::= 'a'"}):
        with pytest.raises(ValueError, match="cannot be used together"):
            params("words", structured_outputs=StructuredOutputsParams(**own))


def test_tokens_held_back_in_v1_end_one_request() -> None:
    made = ToolcLogitsProcessor(config(), torch.device("cpu"), False)
    builder = state.BatchUpdateBuilder(added=[(0, params("words"), [1], [-1]), (1, params("words"), [1], [])])
    made.update_state(builder.get_and_reset(2))
    rows = made.apply(torch.zeros(2, PADDED))
    assert torch.isfinite(rows[0]).nonzero().view(-1).tolist() == sorted(ENDS)
    check(rows[1], "words", [])
