"""Let a trained model answer questions with calls, free and under several masks: tokens, right calls, what masks took.

    python -m benchmarks.answers --model FOLDER --data FOLDER --out FILE [--arms free,spaced,…] [--count 200]
    python -m benchmarks.answers_tables FILE…

The model is a checkpoint of `transformers`; the data, a folder with `bfcl` and `papers/funcqa`. The prompt gives the
tools and the form of a call as JSON, with the model's chat template, or as plain text where it has none. Answers are
greedy, in float32 on one thread. FILE gets one JSON line an answer; what it has already is left out, so a run that was
ended goes on where it was.

A prompt is read once. The arms of a question share what the model computes as long as they wrote the same tokens, so
equal masks give equal answers. With `--alone` every arm is decoded by itself, one question at a time, and the line has
the processor seconds of the answer, prompt left out, compile left out.

A free answer is over where its first whole object stands. `taken`, one row a token of an arm with a mask: the region
(regions.py), the probability of the tokens that the mask forbids, the part of it that is of tokens beginning with a
blank, and the likeliest token if it is forbidden, else "".
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from toolc.compiler import compile_schema, read_spec
from toolc.runtime.errors import ToolcError

from .arms import Arms, Constraint
from .questions import MOST, Question, questions_of
from .regions import BLANKS, Place

ARMS = "free,spaced,spaced/any,spaced/canonical,compact,pretty,8,xgrammar/pretty,xgrammar,llguidance"
PROSE = 48
"""Tokens after which a free answer without a brace is left: it is no call."""
_SYSTEM = """You call tools. These are the tools:
<tools>{tools}</tools>
A tool get_weather with an argument city would be called like this:
{{"name": "get_weather", "arguments": {{"city": "Paris"}}}}"""
_ASK = "{question}\n\nDo not answer. Write the JSON object that calls the right tool, and nothing else."


def prompt_of(question: Question, tokenizer: Any) -> str:
    """The prompt, with the chat template if there is one."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        for tool in read_spec(question.functions).tools
    ]
    system, asked = _SYSTEM.format(tools=json.dumps(tools)), _ASK.format(question=question.text)
    if tokenizer.chat_template is None:
        return f"{tokenizer.bos_token or ''}{system}\n\nQuestion: {asked}\n\nJSON object:\n"
    messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
    return str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))


def call_in(text: str) -> Any:
    """The first object of a text that is whole; None if there is none."""
    begin = text.find("{")
    if begin < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, begin)[0]
    except ValueError:
        return None


@dataclass
class Answer:
    """One answer in the making."""

    arm: str
    question: Question
    constraint: Constraint | None
    tokens: list[int] = field(default_factory=list)
    text: bytes = b""
    place: Place = field(default_factory=Place)
    pending: list[int] = field(default_factory=list)
    forced: int = 0
    ended: bool = False
    seconds: float = 0.0
    taken: list[tuple[str, float, float, str]] = field(default_factory=list)

    def line(self) -> dict[str, Any]:
        """What is kept of it."""
        text = self.text.decode(errors="replace")
        call = call_in(text) if self.constraint is None or self.ended else None
        function, arguments = self.question.judge(call)
        about = {"arm": self.arm, "id": self.question.id, "tokens": len(self.tokens), "forced": self.forced}
        about |= {"ended": self.ended, "parses": call is not None, "function": function, "right": arguments}
        return {**about, "seconds": round(self.seconds, 4), "text": text, "taken": self.taken}


class Model:
    """A model with its tokens.

    Args:
        folder: of the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from .shared_prompts import register

        of = {"dtype": torch.float32, "attn_implementation": register()}
        self.model = AutoModelForCausalLM.from_pretrained(folder, **of).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.tokenizer.padding_side = "left"
        self.vocab = compile_schema({"const": 0}, folder).bundle.vocab
        self.ends = list(self.vocab.end_of_turn)
        self.size = self.model.config.vocab_size
        self.arms = Arms(folder, self.tokenizer, self.size, self.ends)
        self.texts = [self.vocab.token(i) for i in range(self.vocab.size)]
        begins = [text[:1] in BLANKS and text != b"" for text in self.texts]
        self.begins_blank = torch.tensor(begins + [False] * (self.size - len(begins)), dtype=torch.float32)

    def read(self, prompts: list[str]) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """Read prompts side by side: the cache, the logits, and which positions are no padding."""
        read = self.tokenizer(prompts, add_special_tokens=False, return_tensors="pt", padding=True)
        seen = read.attention_mask
        places = (seen.cumsum(-1) - 1).clamp(min=0)
        out = self.model(read.input_ids, attention_mask=seen, position_ids=places, use_cache=True, logits_to_keep=1)
        return out.past_key_values, out.logits[:, -1], seen

    def take(self, answer: Answer, logits: torch.Tensor, chances: torch.Tensor) -> int:
        """Choose and read the next token of an answer."""
        wanted = int(logits.argmax())
        if answer.constraint is None:
            token = wanted
            answer.tokens.append(token)
            answer.ended = token in self.ends
            if not answer.ended:
                answer.text += self.texts[token]
                over = b"}" in self.texts[token] and call_in(answer.text.decode(errors="replace")) is not None
                answer.ended = over or (len(answer.tokens) == PROSE and b"{" not in answer.text)
            return token
        mask = np.zeros(-(-self.size // 32), np.uint32)
        answer.constraint.fill(mask)
        allowed = torch.from_numpy(np.unpackbits(mask.view(np.uint8), bitorder="little")[: self.size].view(bool))
        token = int(logits.masked_fill(~allowed, -torch.inf).argmax())
        answer.pending = answer.pending or answer.constraint.forced()
        kept = chances * allowed
        region = answer.place.region
        blank = torch.dot(chances - kept, self.begins_blank).item() if region in ("start", "structure") else 0.0
        lost = "" if token == wanted else self._text(wanted)
        answer.taken.append((region, round(max(0.0, 1 - kept.sum().item()), 4), round(max(0.0, blank), 4), lost))
        if answer.pending and answer.pending.pop(0) == token:
            answer.forced += 1
        else:
            answer.pending = []
        answer.tokens.append(token)
        answer.ended = answer.constraint.read(token)
        if not answer.ended:
            answer.text += self.texts[token]
            answer.place.feed(self.texts[token])
        return token

    def _text(self, token: int) -> str:
        return "END" if token in self.ends else self.texts[token].decode(errors="replace")

    def answer(self, answers: list[Answer], read: Any, rows: list[int], most: int) -> None:
        """Finish answers: `rows` has the row of each in what was read. Those with the same tokens share a row."""
        from .shared_prompts import Branches

        cache, logits, seen = read
        cache = Branches(cache, seen)
        live = list(zip(answers, rows, strict=True))
        for _ in range(most):
            chances = torch.softmax(logits, -1)
            children: dict[tuple[int, int], int] = {}
            going = []
            for one, row in live:
                begin = time.process_time()
                token = self.take(one, logits[row], chances[row])
                one.seconds += time.process_time() - begin
                if not one.ended:
                    going.append((one, children.setdefault((row, token), len(children))))
            live = going
            if not live:
                return
            begin = time.process_time()
            parents = torch.tensor([row for row, _ in children])
            if not torch.equal(parents, torch.arange(len(logits))):
                cache.select(parents)
                seen = seen[parents]
            seen = torch.cat([seen, seen.new_ones(len(parents), 1)], dim=1)
            places = seen.sum(-1, keepdim=True) - 1
            tokens = torch.tensor([token for _, token in children])[:, None]
            out = self.model(tokens, attention_mask=seen, position_ids=places, past_key_values=cache)
            logits = out.logits[:, -1]
            for one, _ in live:
                one.seconds += time.process_time() - begin

    def begin(self, arm: str, question: Question) -> Answer:
        """An answer with nothing in it yet."""
        return Answer(arm, question, None if arm == "free" else self.arms.constraint(arm, question))


def known(path: Path) -> set[tuple[str, str, bool]]:
    """What a file has: arm, question, whether it was alone."""
    if not path.exists():
        return set()
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(one["arm"], one["id"], one["alone"]) for one in lines}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a checkpoint")
    parser.add_argument("--data", type=Path, required=True, help="folder with bfcl and papers/funcqa")
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines, which grows")
    parser.add_argument("--arms", default=ARMS)
    parser.add_argument("--count", type=int, default=200, help="questions")
    parser.add_argument("--longest", type=int, default=MOST, help="characters of a question with its tools")
    parser.add_argument("--most", type=int, default=96, help="tokens after which an answer that has not ended is left")
    parser.add_argument("--batch", type=int, default=16, help="questions side by side")
    parser.add_argument("--alone", action="store_true", help="one answer at a time, with its processor seconds")
    a = parser.parse_args(arguments)
    torch.set_num_threads(1)
    questions = questions_of(a.data, a.longest)[: a.count]
    done = known(a.out)
    arms = a.arms.split(",")
    left = [q for q in questions if any((arm, q.id, a.alone) not in done for arm in arms)]
    model = Model(a.model)
    prompts = {q.id: prompt_of(q, model.tokenizer) for q in left}
    size = 1 if a.alone else a.batch
    span = 4 * size  # questions of about the same length are read side by side, the file still grows in order
    spans = [sorted(left[n : n + span], key=lambda q: len(prompts[q.id])) for n in range(0, len(left), span)]
    batches = [some[n : n + size] for some in spans for n in range(0, len(some), size)]
    with torch.inference_mode(), a.out.open("a", encoding="utf-8") as out:
        for some in batches:
            answers, rows = [], []
            for row, question in enumerate(some):
                for arm in arms:
                    if (arm, question.id, a.alone) in done:
                        continue
                    try:
                        answers.append(model.begin(arm, question))
                    except (ToolcError, RuntimeError, ValueError) as error:
                        refused = {"arm": arm, "id": question.id, "alone": a.alone, "refused": str(error)[:500]}
                        print(json.dumps(refused), file=out, flush=True)
                        continue
                    rows.append(row)
            read = model.read([prompts[q.id] for q in some])
            if a.alone:
                for one, row in zip(answers, rows, strict=True):
                    model.answer([one], read, [row], a.most)
            else:
                model.answer(answers, read, rows, a.most)
            for one in answers:
                print(json.dumps({**one.line(), "alone": a.alone}), file=out, flush=True)


if __name__ == "__main__":
    main()
