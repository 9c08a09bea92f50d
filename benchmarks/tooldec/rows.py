"""Train rows of the output embedding of a frozen model: one for ``<T>`` (ToolDec), or one a tool (ToolkenGPT).

    lines    texts in which a call is due at one place
    places   where a token of a line is predicted, and what the frozen model has there: computed once, as nothing below
             the rows changes
    rows     fitted by Adam to the model's own loss: cross entropy over the vocabulary and the rows, at every place

The loss needs of the vocabulary only the sum of its exponentials and the wanted token's logit, so an epoch over some
thousand places takes milliseconds. A tenth of the lines is held out, and says when to stop.

Leaves out   rows of the input embedding: a call is spelled out behind its row, and the row is never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import linear

from .decode import Model
from .llama import Texts

STEPS = 600


class Line(NamedTuple):
    """A text with a call: what is before it, its result, what follows; and which row is due (-1: none)."""

    before: str
    result: str
    after: str
    row: int


@dataclass
class Places:
    """What the frozen model has at P places of some lines, where it predicts the next token.

    Attributes:
        states: float32 [P, D].
        log_sum: log of the sum of exponentials of all logits of the vocabulary, [P].
        wanted: logit of the token that stands there, [P]; any where a row is due.
        best: the highest logit, [P].
        row: the row that is due, int64 [P]; -1 where none is.
        line: number of the place's line, int64 [P].
    """

    states: torch.Tensor
    log_sum: torch.Tensor
    wanted: torch.Tensor
    best: torch.Tensor
    row: torch.Tensor
    line: torch.Tensor

    def of(self, lines: torch.Tensor) -> Places:
        """The places of some lines, given as bool by number of line."""
        at = lines[self.line]
        return Places(*(getattr(self, name)[at] for name in self.__dataclass_fields__))


@torch.inference_mode()
def look(model: Model, head: str, lead: Sequence[str], lines: Sequence[Line], batch: int = 16) -> Places:
    """Read lines behind a prompt.

    Args:
        head: the prompt.
        lead: of each line, what stands before it and is not learned from (its question).
    """
    prompt = model.read(head)
    parts = []
    for number, (first, line) in enumerate(zip(lead, lines, strict=True)):
        begin, before, result, after = map(model.encode, (first, line.before, line.result, line.after))
        tokens = [*begin, *before, *result, *after]
        due = len(begin) + len(before) - 1  # the place behind which the call begins
        places = [*range(len(begin) - 1, due + 1), *range(due + len(result), len(tokens) - 1)]
        parts.append((number, tokens, due, [place for place in places if place >= 0]))
    parts.sort(key=lambda part: len(part[1]))
    found: list[tuple[torch.Tensor, ...]] = []
    for at in range(0, len(parts), batch):
        some = parts[at : at + batch]
        width = max(len(tokens) for _, tokens, _, _ in some)
        missing = [width - len(tokens) for _, tokens, _, _ in some]
        ids = torch.tensor([[0] * miss + tokens for miss, (_, tokens, _, _) in zip(missing, some, strict=True)])
        states = Texts(model.llama, prompt, torch.tensor(missing)).states(ids)
        for n, (number, tokens, due, places) in enumerate(some):
            own = states[n, missing[n] :][places]
            logits = linear(own, model.llama.head)
            follow = torch.tensor([tokens[min(place + 1, len(tokens) - 1)] for place in places])
            row = torch.tensor([lines[number].row if place == due else -1 for place in places])
            wanted = logits.gather(1, follow[:, None])[:, 0]
            line = torch.full_like(row, number)
            found.append((own, logits.logsumexp(-1), wanted, logits.max(-1).values, row, line))
    return Places(*(torch.cat(each).clone() for each in zip(*found, strict=True)))


def loss(rows: torch.Tensor, places: Places) -> torch.Tensor:
    """Cross entropy, the mean over the places."""
    scores = linear(places.states, rows)
    whole = torch.logaddexp(places.log_sum, scores.logsumexp(-1))
    due = scores.gather(1, places.row.clamp(min=0)[:, None])[:, 0]
    return (whole - torch.where(places.row < 0, places.wanted, due)).mean()


def fit(places: Places, count: int, rate: float = 0.01) -> tuple[torch.Tensor, dict[str, float]]:
    """Rows, float32 [count, D], that are best on the lines held out; and the losses before, and at the best step."""
    numbers = torch.arange(int(places.line.max()) + 1)
    held = places.of(numbers % 10 == 9)
    learned = places.of(numbers % 10 != 9)
    rows = torch.zeros(count, places.states.shape[1], requires_grad=True)
    adam = torch.optim.Adam([rows], rate)
    first = lowest = float(loss(rows.detach(), held))
    best, step_of_best = rows.detach().clone(), 0
    for step in range(1, STEPS + 1):
        adam.zero_grad()
        torch.autograd.backward(loss(rows, learned))
        adam.step()
        if step % 20 == 0 and (now := float(loss(rows.detach(), held))) < lowest:
            best, lowest, step_of_best = rows.detach().clone(), now, step
    return best, {"before": first, "held out": lowest, "step": step_of_best}


def fired(rows: torch.Tensor, places: Places) -> torch.Tensor:
    """The row that a greedy model writes at each place, int64 [P]; -1: a token of the vocabulary."""
    score, row = linear(places.states, rows).max(-1)
    return torch.where(score > places.best, row, -1)
