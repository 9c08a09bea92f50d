"""llama-cpp-python with a trained model: its tokenizer, its generation under masks, and what it may do wrong.

Runs where llama-cpp-python is installed or $TOOLC_LLAMA_CPP names a folder with it, and the model's GGUF file is there.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.vocab import load_tokens
from toolc.runtime.errors import DecodeError
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.width import PADDING, LogitsWidth
from toolc.runtime.host.matcher import Matcher

from ..runtime.peers import peer
from ..vocab.gguf_files import BYTE, CONTROL, NORMAL, STRING, U32, UNKNOWN, UNUSED, USER, gguf, vocabulary
from .mixed import ALARM, ASKED, BUDGET, LISTS, held, judge, messages, requests
from .places import gemma_file, gguf_file, model_folder

llama_cpp = peer("llama_cpp", "llama_cpp")

from toolc.runtime.adapters.llama_cpp import ToolcLogitsProcessor  # noqa: E402

ASK = [{"role": "user", "content": ASKED[1]}]


@pytest.fixture(scope="module")
def path() -> Path:
    return gguf_file()


@pytest.fixture(scope="module")
def llm(path: Path) -> Any:
    return llama_cpp.Llama(str(path), n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False, seed=5)


@pytest.fixture(scope="module")
def alarm(path: Path) -> Bundle:
    return compile_tools([ALARM], path, options=Options(protocol="hermes")).bundle


def asked(llm: Any, processor: Any, **more: Any) -> Any:
    options = {"max_tokens": BUDGET, "temperature": 0.0} | more
    processors = llama_cpp.LogitsProcessorList([processor])
    return llm.create_chat_completion(ASK, logits_processor=processors, **options)


# ---- tokenizers


def pieces(path: Path) -> tuple[Any, list[bytes]]:
    """What the library writes for each token."""
    llm = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    vocab = llama_cpp.llama_model_get_vocab(llm.model)
    buffer = llama_cpp.llama_cpp.ctypes.create_string_buffer(1 << 12)
    found = []
    for token in range(llm.n_vocab()):
        size = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, False)
        found.append(buffer.raw[: max(size, 0)])
    return llm, found


def check(path: Path) -> None:
    table = load_tokens(path)
    llm, written = pieces(path)
    vocab = llama_cpp.llama_model_get_vocab(llm.model)
    assert (table.size, table.logits_width) == (llm.n_vocab(), llm.n_vocab())
    for token, text in enumerate(table.tokens):
        assert not text or text == written[token], (token, text, written[token])
    silent = [token for token, text in enumerate(table.tokens) if not text and written[token]]
    names = set(table.special.values())
    assert all(token in names or written[token].startswith((b"<unused", b"[UNK_BYTE")) for token in silent)
    assert all(llama_cpp.llama_vocab_is_eog(vocab, token) for token in table.end_of_turn)


def test_the_models_own_tokens(path: Path) -> None:
    """Equal to llama.cpp's, and to those of the same model's checkpoint for transformers."""
    check(path)
    of_file, of_folder = load_tokens(path), load_tokens(model_folder())
    assert of_file.tokens == of_folder.tokens and of_file.special == of_folder.special
    assert (of_file.end_of_turn, of_file.logits_width) == (of_folder.end_of_turn, of_folder.logits_width)


def test_gemma() -> None:
    """262,144 ids and as many logits; the checkpoint for transformers has one id more, for a picture."""
    path = gemma_file()
    check(path)
    table = load_tokens(path)
    assert table.logits_width == table.size == 262_144
    compiled = compile_tools([ALARM], path).bundle
    known = LogitsWidth(compiled.vocab)
    known.check(262_144, [compiled])
    with pytest.raises(DecodeError, match="at most 262144"):
        known.check(262_208, [compiled])  # Gemma 3 of 4B and more: compile for that model
    Matcher(compiled, logits_width=262_144)
    with pytest.raises(DecodeError, match="262208"):
        Matcher(compiled, logits_width=262_208)
    wide = compile_tools([ALARM], path, logits_width=262_208).bundle
    LogitsWidth(wide.vocab).check(262_208, [wide])
    assert 262_208 - table.size <= PADDING


BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
SMALL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), *BYTES]
SMALL += [("▁", NORMAL), ("a", NORMAL), ("▁the", NORMAL), ("é", NORMAL), ("<b>", USER), ("  ", USER), ("▁▁", USER)]
SMALL += [("[PAD266]", UNUSED), ("<unused3>", NORMAL)]


@pytest.mark.parametrize("model", ["llama", "t5"])
def test_made_pieces(tmp_path: Path, model: str) -> None:
    path = tmp_path / "made.gguf"
    ids = {"eos_token_id": (U32, 2), "unknown_token_id": (U32, 0), "bos_token_id": (U32, 1)}
    path.write_bytes(gguf(vocabulary(SMALL, model, **ids)))
    check(path)


def test_made_bytes(tmp_path: Path) -> None:
    path = tmp_path / "made.gguf"
    tokens = [("a", NORMAL), ("b", NORMAL), ("ab", NORMAL), ("Ġa", NORMAL), ("Ċ", NORMAL), ("Ã©", NORMAL)]
    tokens += [("<|im_end|>", CONTROL), ("<tool_call>", USER), ("   ", USER), ("[PAD]", UNUSED), ("→", NORMAL)]
    ids = {"eos_token_id": (U32, 6), "bos_token_id": (U32, 6), "eot_token_id": (U32, 6)}
    path.write_bytes(gguf(vocabulary(tokens, pre=(STRING, "gpt-2"), **ids)))
    check(path)


# ---- answers


def test_mixed_requests(llm: Any, path: Path) -> None:
    """100 requests of all kinds: the judge accepts every answer, and finds the calls that were read."""
    counts = {"held": 0, "calls": 0}
    for body in requests(100):
        bundle, entry = held(body, path)
        processor = ToolcLogitsProcessor(bundle, llm, entry=entry, budget=BUDGET)
        response = llm.create_chat_completion(
            messages(body),
            max_tokens=body["max_tokens"],
            temperature=body["temperature"],
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
        answer = processor.answer(response)["choices"][0]
        raw = llm.detokenize(processor.tokens, special=True).decode()
        calls = judge(body, raw)
        read = [one["function"] for one in answer["message"].get("tool_calls", [])]
        assert [(one["name"], json.loads(one["arguments"])) for one in read] == calls
        assert answer["finish_reason"] == ("tool_calls" if calls else "stop")
        if "response_format" in body:
            assert json.loads(answer["message"]["content"]) == json.loads(raw)
        counts["held"] += 1
        counts["calls"] += len(calls)
    assert counts["held"] == 100 and counts["calls"] > 40


def test_streamed(llm: Any, alarm: Bundle) -> None:
    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    chunks = list(asked(llm, processor, stream=True))
    (call, *_) = processor.reader(chunks[-1]["choices"][0]["finish_reason"]).calls
    assert call.name == "alarm" and call.arguments["hour"] in (6, 7, 8)


def test_beside_another_processor(llm: Any, alarm: Bundle) -> None:
    """The mask is applied to whatever the others leave, and the sampler's settings keep it."""
    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    processors = llama_cpp.LogitsProcessorList([lambda ids, scores: scores * 0.5, processor])
    options = {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.5, "presence_penalty": 1}
    response = llm.create_chat_completion(ASK, logits_processor=processors, max_tokens=BUDGET, **options)
    assert processor.answer(response)["choices"][0]["finish_reason"] == "tool_calls"


def test_cut_by_max_tokens(llm: Any, alarm: Bundle) -> None:
    processor = ToolcLogitsProcessor(alarm, llm, entry="required")
    answer = processor.answer(asked(llm, processor, max_tokens=6))["choices"][0]
    assert answer["finish_reason"] == "length" and "tool_calls" not in answer["message"]


# ---- what goes wrong is told


def test_a_processor_that_was_never_asked(llm: Any, alarm: Bundle) -> None:
    """The library drops the list of processors where a request has a logit_bias."""
    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    response = asked(llm, processor, max_tokens=4, logit_bias={"5": 1.0})
    with pytest.raises(DecodeError, match="asked for no mask"):
        processor.answer(response)


def test_a_second_request(llm: Any, alarm: Bundle) -> None:
    """The library drops what a processor raises: it ends the text at once, and reading raises."""
    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    processor.answer(asked(llm, processor))
    again = asked(llm, processor)
    assert again["usage"]["completion_tokens"] <= 1
    with pytest.raises(DecodeError, match="a second text"):
        processor.answer(again)


def test_a_stop_inside_of_a_call(llm: Any, alarm: Bundle) -> None:
    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    response = asked(llm, processor, stop=["alarm"])
    with pytest.raises(DecodeError, match="the text was cut"):
        processor.answer(response)


def test_a_token_that_no_mask_allowed(llm: Any, alarm: Bundle) -> None:
    """A processor behind this one that lifts a forbidden token."""

    def lift(ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        scores[:] = 0.0
        return scores

    processor = ToolcLogitsProcessor(alarm, llm, entry="required", budget=BUDGET)
    processors = llama_cpp.LogitsProcessorList([processor, lift])
    response = llm.create_chat_completion(ASK, logits_processor=processors, max_tokens=4, temperature=0.0)
    with pytest.raises(DecodeError):
        processor.answer(response)


def test_another_tokenizer(llm: Any, path: Path) -> None:
    other = compile_tools([ALARM], "builtin").bundle
    with pytest.raises(DecodeError, match="another tokenizer"):
        ToolcLogitsProcessor(other, llm)
    ends = compile_tools([ALARM], path, eos=["<|im_start|>"]).bundle
    with pytest.raises(DecodeError, match="does not stop"):
        ToolcLogitsProcessor(ends, llm)
    narrow = compile_tools([ALARM], path, logits_width=49_152).bundle
    ToolcLogitsProcessor(narrow, llm)


def test_a_bundle_of_the_checkpoint(llm: Any) -> None:
    """Compiled for the files of transformers, it is served as well."""
    bundle = compile_tools(LISTS[0], model_folder(), options=Options(protocol="hermes")).bundle
    processor = ToolcLogitsProcessor(bundle, llm, entry="required", budget=BUDGET)
    assert processor.answer(asked(llm, processor))["choices"][0]["finish_reason"] == "tool_calls"


def test_drafts_are_refused(llm: Any, alarm: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "draft_model", object())
    with pytest.raises(DecodeError, match="drafts"):
        ToolcLogitsProcessor(alarm, llm)


def test_the_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/serving/llama_cpp.md, block by block, but for pip."""
    page = (Path(__file__).parents[2] / "docs" / "serving" / "llama_cpp.md").read_text(encoding="utf-8")
    shell, code = re.findall(r"^```(?:sh|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").symlink_to(path)
    (tmp_path / "tools.json").write_text(json.dumps([ALARM]))
    install, command = shell.splitlines()
    assert install.startswith("pip install ") and command.startswith("toolc compile ")
    result = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    names: dict[str, Any] = {}
    exec(compile(code, "llama_cpp.md", "exec"), names)  # a page of our own
    (call, *_) = names["message"]["tool_calls"]
    assert call["function"]["name"] == "alarm" and json.loads(call["function"]["arguments"])["hour"] in (6, 7, 8)
