"""A proposer for vLLM that proposes nothing: it makes vLLM reserve room for the drafts of vllm_scheduler.py.

    --speculative-config '{"method": "custom_class", "model": "toolc.runtime.adapters.vllm_drafts.NoDrafts",
                           "num_speculative_tokens": 16}'

vLLM asks its proposer in the worker, and tells it no more than tokens: neither the request nor its constraint. The
scheduler knows both, so the drafts are made there. Rows without a bundle get none.

Mended       vLLM 0.32 on a CPU leaves temperature, top-k and top-p of drafts' rows unset: utils/cpu_triton_utils.py:390
             fills a copy of what it is to fill. So samples, and greedy texts beside them, would be others with drafts
             than without, whoever drafts. Where vLLM's function says something wrong, it is replaced.
Source       vLLM 0.32: v1/worker/gpu_model_runner.py, propose_draft_token_ids; v1/spec_decode/custom_class_proposer.py.
"""

from __future__ import annotations

from typing import Any

import torch


class NoDrafts:
    """What `speculative_config` names as `model`.

    Args:
        vllm_config: unused.
    """

    def __init__(self, vllm_config: Any) -> None:
        mend_rejection_sampler()

    def load_model(self, *arguments: Any, **named: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: list[list[int]], *arguments: Any, **named: Any) -> list[list[int]]:
        """An empty draft for every request of the batch."""
        return [[] for _ in sampled_token_ids]


def mend_rejection_sampler() -> bool:
    """Replace vLLM's `expand_batch_to_tokens` where it is wrong on this machine; whether it is replaced now."""
    from vllm.v1.sample import rejection_sampler

    if rejection_sampler.expand_batch_to_tokens is expanded:
        return True
    if torch.cuda.is_available():
        return False
    given, ends = torch.tensor([2.0, 0.0, 3.0]), torch.tensor([1, 3, 6], dtype=torch.int32)
    found = rejection_sampler.expand_batch_to_tokens(given, ends, 6, 0, 1)
    if torch.equal(found, expanded(given, ends, 6, 0, 1)):
        return False
    rejection_sampler.expand_batch_to_tokens = expanded
    return True


def expanded(
    x: torch.Tensor, cu_num_tokens: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> torch.Tensor:
    """What vLLM's function is to give: the value of each request once for each of its drafted tokens.

    Args:
        x: [requests]; a value `replace_from` counts as `replace_to`.
        cu_num_tokens: int [requests], where the tokens of each request end.
        num_tokens: of all requests.
    """
    counts = torch.diff(cu_num_tokens.to(torch.int64), prepend=cu_num_tokens.new_zeros(1, dtype=torch.int64))
    values = torch.where(x == replace_from, torch.full_like(x, replace_to), x)
    return values.repeat_interleave(counts, output_size=num_tokens)
