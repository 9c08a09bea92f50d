"""Put toolc into vLLM: its general plugin, and the two places of vLLM that have no public hook.

    pip install toolc        # beside vLLM: the entry point `toolc` of the group `vllm.general_plugins`

1. `EngineArgs.create_engine_config` (vllm/engine/arg_utils.py), so that `--logits-processors` names the processor once,
   whether the operator does or not. Without the option the V1 runner would hold back the output tokens. (An entry
   point of the group `vllm.logits_processors` would be loaded a second time, beside the option.)
2. `InputProcessor.__init__` (vllm/v1/engine/input_processor.py), so that requests are admitted by the engine's own
   config: what vLLM calls at admission, `LogitsProcessor.validate_params`, is a class method and knows no config.

Leaves out   what is checked: see vllm.py, `Gate`.
Invariants   loading twice does nothing. vLLM loads the plugin in every process, before a config is made.
Source       vLLM 0.32.0 and 0.33.0.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

_LOG = logging.getLogger(__name__)

PROCESSOR = "toolc.runtime.adapters.vllm:ToolcLogitsProcessor"
PREFIX = "toolc_"
SCHEDULER = "toolc.runtime.adapters.vllm_scheduler.DraftingScheduler"
_MARK = "_toolc"


def register() -> None:
    """The general plugin."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine.input_processor import InputProcessor

    share_log()
    if hasattr(InputProcessor, _MARK):
        return
    setattr(InputProcessor, _MARK, True)
    create, begin = EngineArgs.create_engine_config, InputProcessor.__init__

    @functools.wraps(create)
    def create_engine_config(self: Any, *arguments: Any, **named: Any) -> Any:
        config = create(self, *arguments, **named)
        name_processor(config)
        return config

    @functools.wraps(begin)
    def __init__(self: Any, vllm_config: Any, *arguments: Any, **named: Any) -> None:
        begin(self, vllm_config, *arguments, **named)
        validate = self.validate_logits_processors_params

        @functools.cache
        def gate() -> Any:
            # Not before a request asks for it. vLLM 0.32 starts no worker on a CPU in a process that has loaded
            # llvmlite: triton_utils/dispatcher.py:139 fails at the objects of its library.
            from .vllm import Gate

            return Gate(vllm_config, lambda: self.tokenizer)

        def admit(params: Any) -> None:
            if any(key.startswith(PREFIX) for key in getattr(params, "extra_args", None) or ()):
                try:
                    gate().admit(params)
                except ValueError as error:  # a plain one would be answered with status 500
                    raise VLLMValidationError(str(error)) from error
            validate(params)

        self.validate_logits_processors_params = admit

    EngineArgs.create_engine_config, InputProcessor.__init__ = create_engine_config, __init__


def name_processor(config: Any) -> None:
    """Have the workers of an engine load the processor, once, wherever they can."""
    from .admitted import engine_folder

    model = config.model_config
    if refusal(config) is not None:
        _LOG.warning("toolc: requests that name a bundle will be refused: %s", refusal(config))
        return
    engine_folder()  # the engine's other processes inherit its name
    if masks_in_scheduler(config):
        return
    names = [name for name in model.logits_processors or () if name != PROCESSOR]
    model.logits_processors = [*names, PROCESSOR]


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
