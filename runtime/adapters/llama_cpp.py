"""A logits processor for `llama-cpp-python`, and its answers read back as calls.

    processor = ToolcLogitsProcessor(bundle, llm, entry="required", budget=200)
    answer = llm.create_chat_completion(
        messages, tools=tools, max_tokens=200, logits_processor=LogitsProcessorList([processor])
    )
    answer = processor.answer(answer)  # with tool_calls

Leaves out   the masks: see matcher.py. The prompt: the model's chat template gets `tools`.
Invariants   needs numpy, and of llama_cpp only what its C functions say of tokens. A processor belongs to one request.
             What it was made for is checked when it is made: every token of the bundle's vocabulary, the ends of turn
             and the number of logits are those of the model.
Errors       llama_cpp calls a processor from C and drops what it raises, so that the text would go on without a mask.
             So an error is kept: from then on only the end of turn is allowed, and `reader` and `answer` raise it. They
             also raise where llama_cpp never asked (a `logit_bias` makes it lose all processors) or sampled another
             token than a mask allowed.
Last token   the library does not show it to processors. It is the end of turn where the text was not cut; of one cut by
             `max_tokens` the last token is missing here.
Text         comes from the tokens, as the library leaves special tokens out, and cuts those of more than 32 bytes.
Source       llama-cpp-python 0.3.36, llama.py: `_init_sampler`, `generate`, `_create_completion`.
"""

from __future__ import annotations

import ctypes
import uuid
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..calls.reader import Reader
from ..errors import DecodeError
from ..format.bundle import Bundle
from ..format.vocab import Vocab
from ..format.width import LogitsWidth
from ..host.matcher import Matcher

_NONE = np.float32(-np.inf)


class ToolcLogitsProcessor:
    """Allows only what a bundle allows, in one answer of a `llama_cpp.Llama`.

    Args:
        bundle: of the tools, or of a response.
        llm: the `llama_cpp.Llama` that will answer.
        entry: the name of the entry where the text begins.
        budget: how many tokens there may be, `max_tokens` of the request, so that the text ends in time. See `Matcher`.

    Raises:
        DecodeError: the bundle is of another tokenizer, or the model drafts tokens.
    """

    def __init__(self, bundle: Bundle, llm: Any, *, entry: str = "start", budget: int | None = None) -> None:
        check_model(bundle, llm)
        if llm.draft_model is not None:
            raise DecodeError(
                "llama_cpp does not tell processors which tokens are drafts",
                found="a draft_model",
                expected="a Llama without one",
            )
        self._matcher = Matcher(bundle, entry, budget)
        self._entry = entry
        self._width = int(llm.n_vocab())
        self._bits = np.zeros(bundle.vocab.words, dtype=np.uint32)
        self._banned = np.ones(max(32 * bundle.vocab.words, self._width), dtype=bool)
        self._prompt = 0
        self._ids: np.ndarray | None = None
        self._error: DecodeError | None = None

    def __call__(self, input_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The scores, in place, with -inf where a token is not allowed."""
        if self._error is None:
            try:
                self._follow(input_ids)
                self._matcher.fill(self._bits)
            except DecodeError as error:
                self._error = error
        if self._error is not None:
            self._bits[:] = 0
            for token in self._matcher.bundle.tables.end_of_turn_tokens.tolist():
                self._bits[token >> 5] |= np.uint32(1 << (token & 31))
        allowed = np.unpackbits(self._bits.view(np.uint8), bitorder="little")
        np.equal(allowed, 0, out=self._banned[: allowed.size])
        scores[self._banned[: scores.size]] = _NONE
        return scores

    def _follow(self, ids: np.ndarray) -> None:
        """Read the token that was sampled since the last time."""
        before = self._ids
        if before is None:
            self._prompt = ids.size
        elif ids.size != before.size + 1 or not np.array_equal(ids[:-1], before):
            raise DecodeError(
                "a processor was used for a second text",
                found=f"{ids.size} tokens after {before.size}",
                expected="one more at a time",
                hint="make a new processor for each request",
            )
        else:
            self._matcher.advance(int(ids[-1]))
        self._ids = ids.copy()

    @property
    def tokens(self) -> list[int]:
        """The tokens of the answer but for the last."""
        return [] if self._ids is None else self._ids[self._prompt :].tolist()

    def reader(self, finish_reason: str = "stop") -> Reader:
        """A reader that has read the answer; its `calls` are those that are whole.

        Args:
            finish_reason: as the answer states it; "length": the text was cut.

        Raises:
            DecodeError: no text of the bundle, or none to the end, or see `Errors` above.
        """
        return self._read(finish_reason)[0]

    def _read(self, finish_reason: str) -> tuple[Reader, dict[str, str]]:
        """A reader, and what was said and thought."""
        if self._error is not None:
            raise self._error
        if self._ids is None:
            raise DecodeError(
                "llama_cpp asked for no mask",
                place=self._matcher.bundle.name,
                hint="give the processor as logits_processor=LogitsProcessorList([processor]), and no logit_bias",
            )
        reader = Reader(self._matcher.bundle, self._entry)
        events = [event for token in self.tokens for event in reader.feed(token)]
        if finish_reason == "stop":
            if not self._matcher.is_complete:
                raise DecodeError(
                    "the text was cut, or a token sampled that no mask allowed",
                    place=f"{self._matcher.bundle.name}, token {len(self._matcher)}",
                    found=repr(reader.data[-40:])[1:],
                    expected="a whole text",
                    hint="`stop` cuts texts, and typical_p below 1 cannot bear tokens of no probability",
                )
            events += reader.finish()
        said = {"text": "", "reasoning": ""}
        for event in events:
            if event.kind in said:
                said[event.kind] += event.text
        return reader, said

    def answer(self, response: Mapping[str, Any]) -> dict[str, Any]:
        """A response of `create_chat_completion` with what was said, thought and called in its message.

        Raises:
            DecodeError: as `reader`.
        """
        (choice,) = response["choices"]
        reason = choice["finish_reason"]
        reader, said = self._read(reason)
        message: dict[str, Any] = {"role": "assistant", "content": said["text"] or None}
        if said["reasoning"]:
            message["reasoning_content"] = said["reasoning"]
        if reader.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{uuid.uuid4().hex}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.json},
                }
                for call in reader.calls
            ]
            reason = "tool_calls" if reason == "stop" else reason
        return {**response, "choices": [{**choice, "message": message, "finish_reason": reason}]}


_checked: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
"""Digests of the vocabularies that are those of a model."""


def check_model(bundle: Bundle, llm: Any) -> None:
    """Refuse a bundle whose tokenizer is not that of a model: every token is compared, once for a model.

    Raises:
        DecodeError: a token is another one, the model has fewer logits, or it does not stop at an end of turn.
    """
    vocab = bundle.vocab
    width = LogitsWidth(vocab, int(llm.n_vocab()))
    width.check_given([bundle])
    known = _checked.setdefault(llm, set())
    if vocab.digest not in known:
        _check_tokens(vocab, llm)
        known.add(vocab.digest)


def _check_tokens(vocab: Vocab, llm: Any) -> None:
    import llama_cpp

    model = llama_cpp.llama_model_get_vocab(llm.model)
    buffer = ctypes.create_string_buffer(vocab.longest + 256)
    ids = min(vocab.size, int(llm.n_vocab()))

    def piece(token: int, special: bool) -> bytes:
        size = llama_cpp.llama_token_to_piece(model, token, buffer, len(buffer), 0, special)
        return buffer.raw[: max(size, 0)]

    names = {token: name.encode() for name, token in vocab.special.items()}
    for token in range(ids):
        text, name = vocab.token(token), names.get(token)
        wanted = text if name is None else name
        if wanted and piece(token, name is not None) != wanted:
            raise DecodeError(
                "the bundle belongs to another tokenizer than the model",
                place=f"token {token}",
                found=repr(piece(token, True))[1:],
                expected=repr(wanted)[1:],
                hint="compile it with --tokenizer and the model's .gguf file",
            )
    for token in vocab.end_of_turn:
        if not llama_cpp.llama_vocab_is_eog(model, token):
            raise DecodeError(
                "the model does not stop at an end of turn of the bundle",
                place=f"token {token}",
                found=vocab.shown(token),
                hint="compile it with --tokenizer and the model's .gguf file, or name other ends with --eos",
            )
