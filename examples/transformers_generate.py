"""One call of a Python function, written by a model of transformers: ``python transformers_generate.py [MODEL]``."""

import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

from toolc.compiler import compile_tools
from toolc.runtime import read_calls, run
from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor


def current_weather(place: str, days: int = 1) -> str:
    """Tell the weather of a place.

    Args:
        place: a town.
        days: how many days to look ahead.
    """
    return f"{place}: dry for {days} days"


def main(name: str = "Qwen/Qwen3-0.6B") -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    bundle = compile_tools([current_weather], tokenizer).bundle
    messages = [{"role": "user", "content": "Will it rain in Basel this week?"}]
    prompt = tokenizer.apply_chat_template(
        messages, tools=[current_weather], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    masks = ToolcLogitsProcessor(bundle, entry="required", budget=100)
    out = model.generate(**prompt, logits_processor=[masks], max_new_tokens=100)
    calls = read_calls(bundle, out[0, prompt["input_ids"].shape[1] :].tolist(), "required")
    for call, result in zip(calls, run(calls), strict=True):
        print(f"{call.name}({call.typed()}) gives {result!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
