"""Names in a side prompt: where they are generated, what is put back, and the same in `generate` of transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, DecodeError, read_calls, subset
from toolc.runtime.side_prompt import Calls, generate, spelled

NAMES = ("add", "add_two", "sub", "multiply")
NUMBERS = {"type": "object", "properties": {"x": {"type": "integer"}, "s": {"type": "string"}}, "required": ["x"]}
PROMPT, SIDE = [1, 2, 3], [5, 6]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    tools = [{"name": name, "parameters": NUMBERS} for name in NAMES]
    return compile_tools(tools, "builtin", options=Options(protocol="toolkengpt", closed=True)).bundle


class Script:
    """A model that writes one text in its own context and another behind the side prompt, and what it was asked.

    Where the mask forbids its next token, or the text is over, it prefers the end of turn and then what comes first.
    """

    def __init__(self, bundle: Bundle, text: list[int], name: list[int]) -> None:
        self.bundle, self.text, self.name = bundle, text, name
        self.asked: list[list[int]] = []

    def __call__(self, tokens: Sequence[int]) -> np.ndarray:
        self.asked.append(list(tokens))
        logits = np.linspace(-1, -2, self.bundle.vocab.size, dtype=np.float32)
        logits[self.bundle.vocab.end_of_turn[0]] = 0
        head, text = (SIDE, self.name) if list(tokens[: len(SIDE)]) == SIDE else (PROMPT, self.text)
        if len(tokens) - len(head) < len(text):
            logits[text[len(tokens) - len(head)]] = 1
        return logits


def written(bundle: Bundle, tokens: list[int]) -> str:
    return b"".join(map(bundle.vocab.token, tokens)).decode()


def token_of(bundle: Bundle, text: str) -> list[int]:
    """A token with exactly this text, which is skipped where the vocabulary has none."""
    found = [n for n in range(bundle.vocab.size) if bundle.vocab.token(n) == text.encode()]
    return found[:1] or pytest.skip(f"no token {text!r}")


def test_the_name_is_generated_in_the_side_prompt(bundle: Bundle) -> None:
    text, name = spelled(bundle, b"It is <T>sub(1"), spelled(bundle, b"multiply")
    script, built = Script(bundle, text, name), list[str]()

    def side_prompt(said: list[int]) -> list[int]:
        built.append(written(bundle, said))
        return SIDE

    found = generate(bundle, script, PROMPT, side_prompt, entry="auto/one")
    assert built == ["It is <T>"]
    (call,) = read_calls(bundle, found, "auto/one")
    assert call.name == "multiply"  # and not what the text alone would say
    beside = [tokens for tokens in script.asked if tokens[: len(SIDE)] == SIDE]
    own = [tokens for tokens in script.asked if tokens not in beside]
    assert beside[0] == SIDE and all(tokens[: len(PROMPT)] == PROMPT for tokens in own)
    assert written(bundle, own[len(text) - len(spelled(bundle, b"sub(1"))][len(PROMPT) :]) == "It is <T>m"


@pytest.mark.parametrize("name", NAMES)
def test_every_name(bundle: Bundle, name: str) -> None:
    """Also one that another goes on from: there the token behind it decides, and is not put back."""
    script = Script(bundle, spelled(bundle, b"<T>"), spelled(bundle, name.encode() + b"(7"))
    found = generate(bundle, script, PROMPT, lambda said: SIDE, entry="required/one")
    (call,) = read_calls(bundle, found, "required/one")
    assert call.name == name
    behind = Script(bundle, spelled(bundle, b"<T>" + name.encode() + b"(42)="), spelled(bundle, name.encode() + b"(7"))
    found = generate(bundle, behind, PROMPT, lambda said: SIDE, entry="required/one")
    assert read_calls(bundle, found, "required/one")[0].arguments == {"x": 42}  # 7 was of the side prompt


def test_tokens_that_hold_more_are_cut(bundle: Bundle) -> None:
    """More than the mark, and more than the name."""
    vocab = bundle.vocab
    calls = Calls(bundle, "required/one")
    crossing = next((n for n in range(vocab.size) if vocab.token(n) == b">s" or vocab.token(n) == b">a"), None)
    for token in spelled(bundle, b"<T"):
        assert calls.read(token) == [token] and not calls.is_opened
    if crossing is None:  # the vocabulary has none: what is cut is told of bytes
        tokens = calls.read(token_of(bundle, ">")[0])
    else:
        tokens = calls.read(crossing)
    assert written(bundle, tokens) == ">" and calls.is_opened
    name = calls.name()
    for token in spelled(bundle, b"add("):
        name.read(token)
    assert name.is_settled and written(bundle, name.inside()) == "add"
    assert written(bundle, calls.put_back(name)) == "add" and not calls.is_opened
    assert calls.matcher.advance_bytes(b"(1)=") == 4


def test_a_mark_in_a_string_opens_nothing(bundle: Bundle) -> None:
    calls = Calls(bundle, "required/one")
    for token in spelled(bundle, b"<T>"):
        calls.read(token)
    calls.put_back(calls.name())
    for token in spelled(bundle, b'sub(1, "<T>'):
        assert calls.read(token) == [token] and not calls.is_opened


def test_the_names_of_a_choice(bundle: Bundle) -> None:
    """With one name left the side prompt is not asked at all."""
    some = subset(bundle, ["add_two"])
    script = Script(bundle, spelled(bundle, b"<T>"), [])
    found = generate(some, script, PROMPT, lambda said: SIDE, entry="required/one")
    assert read_calls(some, found, "required/one")[0].name == "add_two"
    assert not any(tokens[: len(SIDE)] == SIDE for tokens in script.asked)


@pytest.mark.parametrize("budget", [None, 14, 30])
def test_budgets(bundle: Bundle, budget: int | None) -> None:
    text = spelled(bundle, b"<T>sub(12345678901234567890")
    script = Script(bundle, text, spelled(bundle, b"sub"))
    found = generate(bundle, script, PROMPT, lambda said: SIDE, entry="required/one", budget=budget)
    assert read_calls(bundle, found, "required/one")[0].name == "sub"
    assert budget is None or len(found) <= budget


def test_protocols_without_a_mark() -> None:
    held = compile_tools([{"name": "f", "parameters": NUMBERS}], "builtin", options=Options(protocol="hermes")).bundle
    with pytest.raises(DecodeError, match="side prompt") as caught:
        generate(held, lambda tokens: np.zeros(1), [], lambda said: [])
    assert "hermes" in str(caught.value.found)


def random_model(size: int, seed: int) -> Any:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=None,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return model


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("entry", ["required/one", "required", "auto"])
def test_generate_of_transformers(bundle: Bundle, seed: int, entry: str) -> None:
    """Token for token what the reference loop gives."""
    torch = pytest.importorskip("torch")
    from toolc.runtime.adapters import side_prompt

    model = random_model(bundle.vocab.size, seed)
    model.generation_config.eos_token_id = list(bundle.vocab.end_of_turn)

    def logits(tokens: Sequence[int]) -> np.ndarray:
        with torch.no_grad():
            return model(torch.tensor([list(tokens)])).logits[0, -1].numpy()

    said: list[list[int]] = []

    def side(text: list[int]) -> list[int]:
        said.append(text)
        return SIDE + text[-2:]

    wanted = generate(bundle, logits, PROMPT, side, entry=entry, budget=40)
    asked, said = said, []
    found = side_prompt.generate(
        model, bundle, torch.tensor([PROMPT]), side, entry=entry, max_new_tokens=40, do_sample=False
    )
    assert found[0, len(PROMPT) :].tolist() == wanted
    assert said == asked and (entry == "auto" or said)
    read_calls(bundle, wanted, entry)


def test_more_than_one_text(bundle: Bundle) -> None:
    torch = pytest.importorskip("torch")
    from toolc.runtime.adapters import side_prompt

    side: Callable[[list[int]], list[int]] = lambda text: SIDE  # noqa: E731
    with pytest.raises(DecodeError, match="of one text"):
        side_prompt.generate(None, bundle, torch.zeros(2, 3, dtype=torch.int64), side, max_new_tokens=40)
    with pytest.raises(DecodeError, match="of one text"):
        side_prompt.generate(None, bundle, torch.zeros(1, 3, dtype=torch.int64), side, max_new_tokens=40, num_beams=2)
