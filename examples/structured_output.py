"""An answer as a dataclass, a model of pydantic would do too: ``python structured_output.py [MODEL]``."""

import dataclasses
import datetime
import sys
from typing import Literal

from transformers import AutoModelForCausalLM, AutoTokenizer

from toolc.compiler import Options, compile_schema
from toolc.runtime import Reader, read_value
from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor


@dataclasses.dataclass
class Trip:
    """What a traveller asked for."""

    to: str
    leaves: datetime.date
    by: Literal["train", "boat"] = "train"


def main(name: str = "Qwen/Qwen3-0.6B") -> None:
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    bundle = compile_schema(Trip, tokenizer, options=Options(protocol="hermes")).bundle
    messages = [{"role": "user", "content": "I take the boat to Thun on 3 May 2027. Answer with JSON: to, leaves, by."}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    masks = ToolcLogitsProcessor(bundle, entry="response", budget=100)
    out = model.generate(**prompt, logits_processor=[masks], max_new_tokens=100)
    reader = Reader(bundle, "response")
    for token in out[0, prompt["input_ids"].shape[1] :].tolist():
        reader.feed(token)
    print(read_value(Trip, reader.text))


if __name__ == "__main__":
    main(*sys.argv[1:])
