"""What blanks between the tokens of JSON cost a trained model: tokens a call, blanks, right calls, size of the bundle.

    python -m benchmarks.blanks --model FOLDER --data FOLDER [--settings spaced,1,compact,8,flexible] [--count 40]

The model is a checkpoint of `transformers` with a chat template. The data is FuncQA (Hao et al. 2023, arXiv
2305.11554): the one-hop questions whose function takes two numbers. The prompt gives the tool and the form of a
call in JSON; the answer is greedy under the masks of that tool, `whitespace` as the setting says. A call is right if
it has the name and the numbers of the data, in either order where the order does not matter. Forced tokens are those
that `Matcher.forced` names: a server need not ask the model for them. Prints one JSON line a setting.

Leaves out   time: the model takes nearly all of it.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Matcher

SETTINGS = "spaced,1,compact,8,flexible"
_CALL = re.compile(r"<(\w+)>\(([-\d.]+), ?([-\d.]+)\)=\S+")
_EITHER_ORDER = ("add", "multiply", "lcm", "gcd")
_BLANKS = " \t\n\r"
_SYSTEM = """You have access to this tool:
<tools>[{tool}]</tools>
Answer with a call of it: {{"name": "func_name", "arguments": {{"argument1": "value1", "argument2": "value2"}}}}"""


class Question(NamedTuple):
    """A question, and the call that answers it."""

    text: str
    name: str
    numbers: tuple[float, float]

    def is_right(self, call: Any) -> bool:
        """Whether a call is the one."""
        numbers = tuple(call["arguments"].values())
        same = numbers == self.numbers or (self.name in _EITHER_ORDER and numbers[::-1] == self.numbers)
        return bool(call["name"] == self.name and same)


def questions_of(folder: Path, count: int) -> list[Question]:
    """The first one-hop questions whose function takes two numbers."""
    found = []
    for row in json.loads((folder / "funcqa_oh.json").read_text(encoding="utf-8")):
        call = _CALL.fullmatch(row["func"])
        if call is not None:
            found.append(Question(row["question"].strip(), call[1], (float(call[2]), float(call[3]))))
    return found[:count]


def tool_of(name: str) -> dict[str, Any]:
    """A function of two numbers."""
    properties = {"x": {"type": "number"}, "y": {"type": "number"}}
    parameters = {"type": "object", "properties": properties, "required": ["x", "y"], "additionalProperties": False}
    return {"name": name, "parameters": parameters}


class Answer(NamedTuple):
    """What the model wrote.

    Attributes:
        text: without the end of turn.
        tokens: how many, the end of turn among them;  forced: how many of these were forced.
        ended: whether it ended.
    """

    text: str
    tokens: int
    forced: int
    ended: bool


class _Row:
    """One answer in the making."""

    def __init__(self, bundle: Bundle) -> None:
        self.matcher = Matcher(bundle)
        self.mask = np.empty(-(-bundle.vocab.size // 32), np.uint32)
        self.text = b""
        self.tokens = self.forced = 0
        self.pending: list[int] = []

    def take(self, logits: torch.Tensor) -> int:
        """The likeliest token that is allowed, which is read."""
        self.matcher.fill(self.mask)
        allowed = np.unpackbits(self.mask.view(np.uint8), bitorder="little")[: logits.shape[0]]
        token = int(logits.masked_fill(torch.from_numpy(allowed == 0), -torch.inf).argmax())
        if self.matcher.is_finished:
            return token
        self.pending = self.pending or self.matcher.forced().tolist()
        if self.pending and self.pending.pop(0) == token:
            self.forced += 1
        else:
            self.pending = []
        self.matcher.advance(token)
        self.tokens += 1
        if not self.matcher.is_finished:
            self.text += self.matcher.bundle.vocab.token(token)
        return token

    def answer(self) -> Answer:
        """What is there."""
        return Answer(self.text.decode(errors="replace"), self.tokens, self.forced, self.matcher.is_finished)


class Asked:
    """Questions that the model has read.

    Args:
        model, tokenizer: of `transformers`.
    """

    def __init__(self, model: Any, tokenizer: Any, questions: list[Question]) -> None:
        self.model, self.questions = model, questions
        texts = []
        for question in questions:
            messages = [
                {"role": "system", "content": _SYSTEM.format(tool=json.dumps(tool_of(question.name)))},
                {"role": "user", "content": question.text},
            ]
            texts.append(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
        tokenizer.padding_side = "left"
        read = tokenizer(texts, add_special_tokens=False, return_tensors="pt", padding=True)
        self._seen = read.attention_mask
        places = (self._seen.cumsum(-1) - 1).clamp(min=0)
        out = model(read.input_ids, attention_mask=self._seen, position_ids=places, use_cache=True, logits_to_keep=1)
        self._cache, self._logits = out.past_key_values, out.logits[:, -1]

    def answers(self, bundles: list[Bundle], most: int) -> list[Answer]:
        """All questions answered side by side, each under its bundle, with at most so many tokens."""
        cache, logits, seen = copy.deepcopy(self._cache), self._logits, self._seen
        rows = [_Row(bundle) for bundle in bundles]
        for _ in range(most):
            tokens = [row.take(one) for row, one in zip(rows, logits, strict=True)]
            if all(row.matcher.is_finished for row in rows):
                break
            seen = torch.cat([seen, seen.new_ones(len(rows), 1)], dim=1)
            places = seen.sum(-1, keepdim=True) - 1
            out = self.model(
                torch.tensor(tokens)[:, None], attention_mask=seen, position_ids=places, past_key_values=cache
            )
            cache, logits = out.past_key_values, out.logits[:, -1]
        return [row.answer() for row in rows]


def measure(asked: Asked, folder: Path, whitespace: str | int, most: int) -> dict[str, Any]:
    """One setting over all questions."""
    options = Options(whitespace=whitespace)
    names = dict.fromkeys(question.name for question in asked.questions)
    made = {name: compile_tools([tool_of(name)], folder, options=options) for name in names}
    answers = asked.answers([made[question.name].bundle for question in asked.questions], most)
    texts = [re.sub(r'"[^"]*"', "", one.text) for one in answers]
    right = [
        one.ended and question.is_right(json.loads(one.text))
        for question, one in zip(asked.questions, answers, strict=True)
    ]

    def per_call(values: Iterable[int]) -> float:
        return round(sum(values) / len(answers), 1)

    return {
        "whitespace": whitespace,
        "questions": len(answers),
        "tokens": per_call(one.tokens for one in answers),
        "blanks": per_call(sum(text.count(blank) for blank in _BLANKS) for text in texts),
        "trailing": per_call(len(text) - len(text.rstrip(_BLANKS)) for text in texts),
        "right": sum(right),
        "ended": sum(one.ended for one in answers),
        "forced_percent": round(100 * sum(one.forced for one in answers) / sum(one.tokens for one in answers), 1),
        "states": round(statistics.mean(one.report["counts"]["states"] for one in made.values())),
        "bytes": round(statistics.mean(one.report["bytes"] for one in made.values())),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint")
    parser.add_argument("--data", type=Path, required=True, help="folder of FuncQA, with funcqa_oh.json")
    parser.add_argument("--settings", default=SETTINGS)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--most", type=int, default=160, help="tokens after which a call that has not ended is left")
    a = parser.parse_args(arguments)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32).eval()
    torch.set_num_threads(1)
    with torch.inference_mode():
        asked = Asked(model, AutoTokenizer.from_pretrained(a.model), questions_of(a.data, a.count))
        for setting in a.settings.split(","):
            whitespace = int(setting) if setting.isdigit() else setting
            print(json.dumps(measure(asked, a.model, whitespace, a.most)), flush=True)


if __name__ == "__main__":
    main()
