"""An agent in the terminal, with a plain decoding loop: ``python agent.py [MODEL] [QUESTION]``.

Text, calls and what they give are shown while they come. The loop shows all that a runtime has to do for a token:
fill a mask, choose, advance, read.
"""

import sys
from collections.abc import Iterator

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from toolc.compiler import compile_tools
from toolc.runtime import Bundle, Matcher, Reader, run

MOST_TOKENS, MOST_TURNS = 120, 3


def current_weather(place: str, days: int = 1) -> str:
    """Tell the weather of a place.

    Args:
        place: a town.
        days: how many days to look ahead.
    """
    return f"{place}: dry for {days} days"


def decode(model: torch.nn.Module, prompt: torch.Tensor, bundle: Bundle, entry: str) -> Iterator[int]:
    """Tokens, one by one, until the end of the turn."""
    matcher = Matcher(bundle, entry, budget=MOST_TOKENS)
    mask = np.zeros(bundle.vocab.words, np.uint32)
    tokens, cache = prompt, None
    while not matcher.is_finished:
        out = model(tokens, past_key_values=cache, use_cache=True)
        cache, logits = out.past_key_values, out.logits[0, -1, : bundle.vocab.size]
        matcher.fill(mask)
        allowed = torch.from_numpy(np.unpackbits(mask.view(np.uint8), bitorder="little")[: bundle.vocab.size]).bool()
        token = int(logits.masked_fill(~allowed, -torch.inf).argmax())  # or sample
        matcher.advance(token)
        yield token
        tokens = torch.tensor([[token]])


def main(name: str = "Qwen/Qwen3-0.6B", question: str = "Will it rain in Basel this week?") -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    bundle = compile_tools([current_weather], tokenizer).bundle
    messages = [{"role": "user", "content": question}]
    for turn in range(MOST_TURNS):
        entry = "auto" if turn else "required"  # the first turn has to call
        prompt = tokenizer.apply_chat_template(
            messages, tools=[current_weather], add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )["input_ids"]
        reader, answer = Reader(bundle, entry), list[int]()
        with torch.inference_mode():
            for token in decode(model, prompt, bundle, entry):
                answer.append(token)
                for event in reader.feed(token):
                    shown = {"name": f"\n→ {event.text} ", "end": "\n"}.get(event.kind, event.text)
                    print(shown, end="", flush=True)
        reader.finish()
        messages.append({"role": "assistant", "content": tokenizer.decode(answer, skip_special_tokens=True)})
        if not reader.calls:
            break
        for result in run(reader.calls):
            print(f"← {result}")
            messages.append({"role": "tool", "content": str(result)})
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
