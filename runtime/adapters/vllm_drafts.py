"""A proposer for vLLM that proposes nothing: it makes vLLM reserve room for the drafts of vllm_scheduler.py.

    --speculative-config '{"method": "custom_class", "model": "toolc.runtime.adapters.vllm_drafts.NoDrafts",
                           "num_speculative_tokens": 16}'

vLLM asks its proposer in the worker, and tells it no more than tokens: neither the request nor its constraint. The
scheduler knows both, so the drafts are made there. Rows without a bundle get none.

Source       vLLM 0.32: v1/worker/gpu_model_runner.py, propose_draft_token_ids; v1/spec_decode/custom_class_proposer.py.
"""

from __future__ import annotations

from typing import Any


class NoDrafts:
    """What `speculative_config` names as `model`.

    Args:
        vllm_config: unused.
    """

    def __init__(self, vllm_config: Any) -> None:
        pass

    def load_model(self, *arguments: Any, **named: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: list[list[int]], *arguments: Any, **named: Any) -> list[list[int]]:
        """An empty draft for every request of the batch."""
        return [[] for _ in sampled_token_ids]
