"""Names of tools in a side prompt, in `generate` of transformers: one text at a time.

Leaves out   what a side prompt is, and the loop that says what this does: see ../side_prompt.py. Masks of rows without
             one: see huggingface.py.
Invariants   only `model.generate` runs the model: for the text up to a call, for its name, and so on. One cache holds
             the model's own context over all of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..device.masks import mask_logits_
from ..errors import DecodeError
from ..side_prompt import Calls, Name, SidePrompt

if TYPE_CHECKING:
    from ..format.bundle import Bundle


def generate(
    model: Any,
    bundle: Bundle,
    input_ids: torch.Tensor,
    side_prompt: SidePrompt,
    *,
    entry: str = "start",
    max_new_tokens: int,
    **options: Any,
) -> torch.Tensor:
    """`model.generate`, with the names of tools generated in side prompts.

    Args:
        model: of transformers.
        bundle: of a protocol with the entry "opened"; see `toolc.runtime.side_prompt.generate`.
        input_ids: the prompt, int64 [1, n].
        side_prompt: builds the side prompt of a call.
        entry: where the text begins.
        max_new_tokens: most tokens of the text, which always ends in time; tokens of side prompts do not count.
        options: others of `model.generate`, as ``do_sample``, but those that make more rows.

    Returns:
        int64 [1, n + tokens of the text].
    """
    if input_ids.ndim != 2 or input_ids.shape[0] != 1:
        raise DecodeError(
            "a side prompt is of one text", found=f"input_ids {list(input_ids.shape)}", expected="[1, tokens]"
        )
    if any(options.get(name, 1) != 1 for name in ("num_beams", "num_return_sequences")):
        raise DecodeError("a side prompt is of one text", found="several rows", expected="no beams")
    from transformers import DynamicCache

    calls = Calls(bundle, entry, max_new_tokens)
    options = {"past_key_values": DynamicCache(config=model.config), **options}
    end = input_ids.shape[1] + max_new_tokens
    ids = input_ids
    while True:
        text = _Text(calls, ids.shape[1])
        left = end - ids.shape[1]
        ids = model.generate(
            ids, max_new_tokens=left, logits_processor=[text], stopping_criteria=[text.stops], **options
        )
        ids = torch.cat([ids[:, : text.begin], _row(text.tokens, ids)], dim=1)
        if not calls.is_opened:
            return ids
        name = calls.name()
        if not name.is_settled:
            side = _row(list(side_prompt(ids[0, input_ids.shape[1] :].tolist())), ids)
            held = _Text(name, side.shape[1])
            how = {key: value for key, value in options.items() if key not in ("past_key_values", "attention_mask")}
            model.generate(side, max_new_tokens=left, logits_processor=[held], stopping_criteria=[held.stops], **how)
        ids = torch.cat([ids, _row(calls.put_back(name), ids)], dim=1)
        _crop(options["past_key_values"], ids.shape[1])


def _row(tokens: list[int], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor([tokens], dtype=like.dtype, device=like.device)


def _crop(cache: Any, length: int) -> None:
    """Forget what the cache holds behind the text, of a token that was cut."""
    if cache.get_seq_length() >= length:
        cache.crop(length - 1)


class _Text:
    """A text or a name while `generate` writes it: masks its logits, and says where to stop.

    Attributes:
        begin: columns before it;  tokens: those of it, cut where more was generated than belongs to it.
    """

    def __init__(self, read: Calls | Name, begin: int) -> None:
        self._read, self.begin, self._columns = read, begin, begin
        self.tokens: list[int] = []

    def _follow(self, input_ids: torch.Tensor) -> None:
        for token in input_ids[0, self._columns :].tolist():
            if self._read.matcher.is_finished:
                self.tokens.append(token)
            else:
                self.tokens += self._read.read(token) or [token]
        self._columns = input_ids.shape[1]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores with -inf where a token is not allowed."""
        self._follow(input_ids)
        bundle = self._read.bundle
        bits = np.empty((1, bundle.vocab.words), dtype=np.uint32)
        self._read.matcher.fill(bits[0])
        words = torch.from_numpy(bits.view(np.int32)).to(scores.device)
        every = torch.ones(1, dtype=torch.bool, device=scores.device)
        return mask_logits_(scores.clone(), words, bundle.vocab.size, every)

    def stops(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Whether the name comes next, or is there: bool [1]."""
        self._follow(input_ids)
        done = self._read.is_opened if isinstance(self._read, Calls) else self._read.is_settled
        return torch.tensor([done or self._read.matcher.is_finished], device=input_ids.device)
