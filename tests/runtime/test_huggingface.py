"""The logits processor in `transformers` `generate`, with tiny random models over the tiny vocabulary."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from toolc.runtime import DecodeError, Matcher
from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor
from toolc.runtime.reference import Sequence

from .handmade import bundle

transformers = pytest.importorskip("transformers")
PAD, END = 2, 0


def model(seed: int = 0, size: int = 128, kind: str = "llama") -> Any:
    torch.manual_seed(seed)
    common = {"vocab_size": size, "pad_token_id": PAD, "eos_token_id": [END, 3], "bos_token_id": None}
    if kind == "gpt2":
        config = transformers.GPT2Config(n_positions=128, n_embd=16, n_layer=1, n_head=2, **common)
        made = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.LlamaConfig(
            hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
            max_position_embeddings=128, **common,
        )  # fmt: skip
        made = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3)
    return made.eval()


def accepted(kind: str, tokens: list[int]) -> tuple[bool, bool]:
    """(all tokens were allowed, the end of turn was read), by the specification; padding after the end is ignored."""
    oracle = Sequence.start(bundle(kind))
    for token in tokens:
        if oracle.state == 1:
            return all(t in (PAD, END, 3) for t in tokens[tokens.index(token) :]), True
        if not oracle.advance(token):
            return False, False
    return True, oracle.state == 1


PROMPT = torch.tensor([[90, 91, 17], [PAD, 8, 9], [30, 31, 32]])
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("greedy", {}),
    ("sampling", {"do_sample": True}),
    ("warped", {"do_sample": True, "temperature": 2.0, "top_k": 5, "top_p": 0.9}),
    ("beams", {"num_beams": 4}),
    ("beam-returns", {"num_beams": 4, "num_return_sequences": 3}),
    ("beam-sampling", {"num_beams": 3, "do_sample": True}),
    ("returns", {"do_sample": True, "num_return_sequences": 2}),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["brackets", "counted"])
@pytest.mark.parametrize("options", [pytest.param(o, id=i) for i, o in WAYS])
def test_generate(options: dict[str, Any], kind: str, seed: int) -> None:
    processor = ToolcLogitsProcessor(bundle(kind), on_device=seed == 1)
    out = model(seed).generate(
        PROMPT, attention_mask=PROMPT != PAD, logits_processor=[processor], max_new_tokens=30, **options
    )
    for row in out[:, PROMPT.shape[1] :].tolist():
        while row and row[-1] == PAD:
            row.pop()
        assert accepted(kind, row)[0]


@pytest.mark.parametrize("options", [pytest.param(o, id=i) for i, o in WAYS])
def test_texts_end_within_their_budgets(options: dict[str, Any]) -> None:
    """As many tokens as `generate` allows: each row is whole, on the host and followed on the device."""
    for seed, on_device in enumerate((False, True)):
        made = [bundle("brackets"), bundle("counted"), None]
        processor = ToolcLogitsProcessor(made, budget=[9, 7, None], on_device=on_device)
        out = model(seed).generate(
            PROMPT, attention_mask=PROMPT != PAD, logits_processor=[processor], max_new_tokens=9, **options
        )
        share = out.shape[0] // 3
        for row, tokens in enumerate(out[:, PROMPT.shape[1] :].tolist()[: 2 * share]):
            kind, most = [("brackets", 9), ("counted", 7)][row // share]
            assert accepted(kind, tokens[:most]) == (True, True)


def test_without_it_the_model_babbles() -> None:
    out = model().generate(PROMPT, attention_mask=PROMPT != PAD, max_new_tokens=30)
    assert not all(accepted("brackets", row)[0] for row in out[:, 3:].tolist())


@pytest.mark.parametrize("sample", [False, True])
def test_assisted(sample: bool) -> None:
    prompt = PROMPT[:1]
    processor = ToolcLogitsProcessor(bundle("brackets"))
    out = model(1).generate(
        prompt, attention_mask=torch.ones_like(prompt), assistant_model=model(2), logits_processor=[processor],
        max_new_tokens=30, do_sample=sample,
    )  # fmt: skip
    row = out[0, 3:].tolist()
    assert accepted("brackets", row)[0]
    if not sample:
        plain = model(1).generate(
            prompt, attention_mask=torch.ones_like(prompt), logits_processor=[ToolcLogitsProcessor(bundle("brackets"))],
            max_new_tokens=30,
        )  # fmt: skip
        assert plain[0, 3:].tolist()[: len(row)] == row[: plain.shape[1] - 3]


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("sample", [False, True])
def test_prompt_lookup(sample: bool, on_device: bool) -> None:
    prompt = torch.tensor([[4, 4, 7, 5, 5, 4, 4, 7]])
    options: dict[str, Any] = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 30, "do_sample": sample}
    for seed in range(4):
        processor = ToolcLogitsProcessor(bundle("brackets"), on_device=on_device)
        out = model(seed).generate(prompt, logits_processor=[processor], prompt_lookup_num_tokens=5, **options)
        assert accepted("brackets", out[0, 8:].tolist())[0]


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("columns", [4, 20, 60])
def test_another_generate_needs_a_reset(columns: int, on_device: bool) -> None:
    """A longer prompt, within the columns seen and beyond; then after `reset`, and the same length without."""
    processor = ToolcLogitsProcessor(bundle("brackets"), budget=30, on_device=on_device)
    other = torch.tensor([[90] * columns] * 2)

    def generate(prompt: torch.Tensor) -> list[list[int]]:
        mask = torch.ones_like(prompt)
        out = model(1).generate(prompt, attention_mask=mask, logits_processor=[processor], max_new_tokens=30)
        found: list[list[int]] = out[:, prompt.shape[1] :].tolist()
        return found

    generate(PROMPT)
    for prompt in (PROMPT, other):
        if prompt is other:
            with pytest.raises(DecodeError, match=r"(?s)the rows .*call reset\(\)"):
                generate(prompt)
            processor.reset()
        assert all(accepted("brackets", row) == (True, True) for row in generate(prompt))


@pytest.mark.parametrize("on_device", [False, True])
def test_a_row_that_goes_on_as_none_before(on_device: bool) -> None:
    """A text may come back from any call; what was read after its end of turn, or after a refused token, may not."""
    processor = ToolcLogitsProcessor(bundle("brackets"), on_device=on_device)

    def read(*tokens: int) -> list[list[int]]:
        return allowed(processor(torch.tensor([[50, *tokens]]), torch.zeros(1, 96)))

    for text in ([], [4], [4, 4], [4, 4, 7], [7], [4, 7, 5], [7], [7, 0], [7, 0, PAD], [7, 0]):
        want = Matcher.from_tokens(bundle("brackets"), [t for t in text if t != PAD]).allowed_tokens().tolist()
        assert read(*text) == [want]
    for other in ([6, 7, 4], [7, 3, PAD], [6]):
        with pytest.raises(DecodeError, match="go on as none"):
            read(*other)
    with pytest.raises(DecodeError, match="grew by more than one token"):
        read(7, 0, PAD, PAD, PAD)


def test_gpt2() -> None:
    out = model(kind="gpt2").generate(
        PROMPT,
        attention_mask=PROMPT != PAD,
        logits_processor=[ToolcLogitsProcessor(bundle("brackets"))],
        max_new_tokens=20,
    )
    assert all(accepted("brackets", row)[0] for row in out[:, 3:].tolist())


def allowed(scores: torch.Tensor) -> list[list[int]]:
    return [torch.isfinite(row).nonzero().view(-1).tolist() for row in scores]


@pytest.mark.parametrize("on_device", [False, True])
def test_any_order_of_calls(on_device: bool) -> None:
    """Prefixes that grow, shrink, swap and branch give what a fresh matcher gives."""
    made = bundle("brackets")
    processor = ToolcLogitsProcessor(made, prompt_length=2, on_device=on_device)
    for batch in (
        [[], []],
        [[4], [7]],
        [[4, 4], [4, 7]],  # both from the first row
        [[4, 7], [4, 4]],
        [[4, 4, 7, 5, 5, 0], [4, 4, 7, 5, 5, 3]],
        [[4, 4], [7, 0]],
        [[4], [4]],
        [[], []],
        [[7, 7], [7, 8]],
    ):
        ids = torch.tensor([[50, 60, *row] for row in batch])
        scores = torch.zeros(2, 100)
        masked = processor(ids, scores)
        assert not scores.any()
        assert allowed(masked) == [Matcher.from_tokens(made, row).allowed_tokens().tolist() for row in batch]


def test_rows_followed_on_the_device_equal_those_read_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beams that branch and swap, rows that end and are refused, several bundles; and nothing goes to the host."""
    made = [bundle("brackets"), None, bundle("counted")]
    pick = random.Random(4)
    for _ in range(6):
        device = ToolcLogitsProcessor(made, prompt_length=1, on_device=True)
        rows: list[list[int]] = [[] for _ in range(9)]
        for _ in range(14):
            ids = torch.tensor([[9, *row] for row in rows])
            host = ToolcLogitsProcessor(made, prompt_length=1, on_device=False)
            want = host(ids, torch.zeros(9, 100))
            with monkeypatch.context() as patch:
                patch.setattr(torch.Tensor, "cpu", None)
                assert torch.equal(device(ids, torch.zeros(9, 100)), want)
            live = allowed(want)
            rows = [
                [*rows[n], pick.choice(live[n]) if pick.random() < 0.95 else pick.randrange(96)]
                for group in range(3)
                for n in pick.choices(range(3 * group, 3 * group + 3), k=3)
            ]
    # Prompts with one bundle and unlike budgets, whose texts begin alike.
    made, budgets = [bundle("brackets"), bundle("brackets"), bundle("brackets")], [3, None, 9]
    device = ToolcLogitsProcessor(made, prompt_length=0, budget=budgets, on_device=True)
    for length in range(4):
        ids = torch.tensor([[4, 4, 4][:length]] * 3, dtype=torch.int64).reshape(3, length)
        host = ToolcLogitsProcessor(made, prompt_length=0, budget=budgets, on_device=False)
        want = host(ids, torch.zeros(3, 100))
        assert torch.equal(device(ids, torch.zeros(3, 100)), want)
        assert length == 0 or allowed(want)[0] != allowed(want)[1]
    # The same length with other tokens before the last: no row of the call before goes on like that.
    device = ToolcLogitsProcessor(bundle("brackets"), prompt_length=0, on_device=True)
    for row in ([], [4], [7, 7]):
        found = allowed(device(torch.tensor([row], dtype=torch.int64), torch.zeros(1, 96)))
    assert found == [[0, 3]]


def test_finished_padded_and_refused_rows() -> None:
    made = bundle("brackets")
    processor = ToolcLogitsProcessor(made, prompt_length=0)
    ids = torch.tensor([[7, 0, PAD, PAD], [4, 6, 7, 7], [4, 4, 4, 4]])
    found = allowed(processor(ids, torch.zeros(3, 96)))
    assert found[0] == [0, 3] and found[1] == [0, 3]
    assert found[2] == Matcher.from_tokens(made, [4, 4, 4, 4]).allowed_tokens().tolist()
    with pytest.raises(DecodeError, match="token 6, ','"):
        ToolcLogitsProcessor(made, prompt_length=0, strict=True)(ids, torch.zeros(3, 96))


def test_rows_with_other_bundles() -> None:
    first, second = bundle("brackets"), bundle("counted")
    processor = ToolcLogitsProcessor([first, None, second], prompt_length=1)
    found = allowed(processor(torch.tensor([[9, 4]] * 6), torch.zeros(6, 100)))
    for rows, made in (((0, 1), first), ((4, 5), second)):
        for row in rows:
            assert found[row] == Matcher.from_tokens(made, [4]).allowed_tokens().tolist()
    assert found[2] == found[3] == list(range(100))
    with pytest.raises(DecodeError, match="does not fit the bundles"):
        processor(torch.tensor([[9, 4]] * 4), torch.zeros(4, 100))


def test_misuse() -> None:
    made = bundle("brackets")
    processor = ToolcLogitsProcessor(made, prompt_length=4)
    with pytest.raises(DecodeError, match="shorter than the prompt"):
        processor(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 96))
    with pytest.raises(DecodeError, match="logits are too narrow"):
        processor(torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 80))
    with pytest.raises(DecodeError, match="different tokenizers"):
        ToolcLogitsProcessor([made, bundle("brackets", 64)])
    with pytest.raises(DecodeError, match="at least 3"):
        ToolcLogitsProcessor(bundle("counted"), budget=2)
    with pytest.raises(DecodeError, match="needs a bundle"):
        ToolcLogitsProcessor([None])
