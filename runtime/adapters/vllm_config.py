"""Tell from vLLM's config how toolc masks in an engine: by a logits processor, by its scheduler, or not at all.

Leaves out   where vLLM asks: vllm_hooks.py. Requests: vllm.py.
Invariants   imports nothing of vLLM, and no kernel: every process of an engine may load it.
Source       vLLM 0.32.0 and 0.33.0.
"""

from __future__ import annotations

import logging
from typing import Any

PROCESSOR = "toolc.runtime.adapters.vllm:ToolcLogitsProcessor"
SCHEDULER = "toolc.runtime.adapters.vllm_scheduler.DraftingScheduler"


def masks_in_scheduler(config: Any) -> bool:
    """Whether requests are masked by toolc's scheduler, and not by a logits processor."""
    name = getattr(getattr(config, "scheduler_config", None), "scheduler_cls", None)
    return (name if isinstance(name, str | None) else f"{name.__module__}.{name.__qualname__}") == SCHEDULER


def refusal(config: Any) -> str | None:
    """Why an engine of this config runs no mask of toolc; None if it does."""
    model = config.model_config
    if model is None or model.runner_type != "generate":
        return "the model generates no text"
    if masks_in_scheduler(config):
        return None
    if config.speculative_config is not None and not config.use_v2_model_runner:
        return (
            "vLLM's V1 runner builds no custom logits processors beside speculative decoding; "
            "set VLLM_USE_V2_MODEL_RUNNER=1, leave out --speculative-config, or draft as docs/speculate.md says"
        )
    if getattr(model, "return_sampling_mask", False):
        return "vLLM's replay of sampling distributions takes no custom logits processors"
    return None


def share_log() -> None:
    """Have toolc's log lines where vLLM's are, unless the operator has set up logging."""
    mine, theirs = logging.getLogger("toolc"), logging.getLogger("vllm")
    if not mine.handlers and not logging.getLogger().handlers:
        mine.handlers = list(theirs.handlers)
        mine.setLevel(theirs.level)
        mine.propagate = False
