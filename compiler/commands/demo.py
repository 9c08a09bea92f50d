"""``toolc demo``: a small transformer with random weights decodes tool calls, with a bundle and without.

The model knows nothing, so whatever is right on the side with the bundle is right because of the bundle. Its logits are
biased, on both sides alike, towards tokens that close something (quotes, brackets, end of turn), more with every step:
a random model would otherwise fill every string to its limit.

Leaves out   masks and states: see toolc.runtime.
Invariants   one seed for the weights and one for each side's sampling: a run repeats on the same machine.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import ToolcError
from ..pipeline import Compiled, compile_spec
from ..specs import Spec, read_spec
from .terminal import NOT_ACCEPTED, Progress, console, note, print_json
from .warmup import warm

if TYPE_CHECKING:
    import torch

    from toolc.runtime.vocab import Vocab

SPEC = "weather.json"
STEPS = 320
WIDTH, HEADS, LAYERS, WINDOW = 64, 4, 2, 48
BIAS, BIAS_PER_STEP = 3.0, 0.04


@dataclass
class Side:
    """One side of the table.

    Attributes:
        texts: what each row wrote, without the end of turn.
        ended: whether the row wrote an end of turn.
        verdicts: None for a valid call, else what is wrong with it.
        tokens: sampled tokens of all rows.
        seconds: wall time of the decode loop.
    """

    texts: list[str]
    ended: list[bool]
    verdicts: list[str | None]
    tokens: int
    seconds: float

    @property
    def valid(self) -> int:
        return sum(verdict is None for verdict in self.verdicts)


def run(rows: int, seed: int, as_json: bool) -> None:
    """Decode both sides and show them; exit code 1 unless every constrained output is valid."""
    if find_spec("torch") is None:
        raise ToolcError("the demo needs torch, which is not installed", hint="pip install 'toolc[torch]'")
    import torch

    torch.set_num_threads(1)  # the model is too small for more, and a run then takes the same time on a busy machine
    with Progress() as progress:
        warm(progress)
        progress("compiling the demo's tools")
        spec, compiled = compile_demo()
        vocab = compiled.bundle.vocab
        model = make_model(vocab.size, seed)
        bias = closing_bias(vocab)
        for constrained in (True, False):  # so that neither side pays for what happens once
            decode(compiled, model, bias, rows, seed, constrained, spec, steps=2)
        progress("decoding with the bundle")
        held = decode(compiled, model, bias, rows, seed, True, spec)
        progress("decoding without")
        free = decode(compiled, model, bias, rows, seed, False, spec)
    if as_json:
        sides = {"with": held, "without": free}
        print_json({"ok": held.valid == rows, "rows": rows} | {key: _facts(side) for key, side in sides.items()})
    else:
        note(f"toolc: compiled {SPEC} for the built-in tokenizer of {vocab.size:,} tokens")
        _print(spec, held, free, sum(p.numel() for p in model.parameters()))
    if held.valid != rows:
        sys.exit(NOT_ACCEPTED)


def compile_demo() -> tuple[Spec, Compiled]:
    """The demo's spec and its bundle."""
    spec = read_spec((files("toolc.tools_specs") / SPEC).read_bytes(), SPEC)
    return spec, compile_spec(spec)


def make_model(size: int, seed: int) -> torch.nn.Module:
    """A causal transformer with random weights: token and position embeddings, two blocks, tied output."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(size + 1, WIDTH)  # the last one begins a text
            self.place = nn.Embedding(WINDOW, WIDTH)
            block = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
            )
            self.blocks = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            length = tokens.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(length)
            x = self.embed(tokens) + self.place.weight[:length]
            x = self.norm(self.blocks(x, mask=mask, is_causal=True)[:, -1])
            return x @ self.embed.weight[:size].T / WIDTH**0.5

    torch.manual_seed(seed)
    return Model().eval()


def closing_bias(vocab: Vocab) -> torch.Tensor:
    """1 for tokens that close something, 0 for others; float32 [V]."""
    import torch

    ends = set(vocab.end_of_turn)
    closes = [token in ends or any(byte in b'"}]' for byte in vocab.token(token)) for token in range(vocab.size)]
    return torch.tensor(closes, dtype=torch.float32)


def decode(
    compiled: Compiled,
    model: torch.nn.Module,
    closing: torch.Tensor,
    rows: int,
    seed: int,
    constrained: bool,
    spec: Spec,
    steps: int = STEPS,
) -> Side:
    """The plain decoding loop; the bundle takes two lines of it."""
    import torch

    from toolc.runtime import Decoder

    vocab = compiled.bundle.vocab
    ends = torch.tensor(vocab.end_of_turn)
    decoder = Decoder(compiled.bundle, rows) if constrained else None
    random = torch.Generator().manual_seed(seed)
    tokens = torch.full((rows, 1), vocab.size)
    ended = torch.zeros(rows, dtype=torch.bool)
    count = 0
    began = time.perf_counter()
    with torch.inference_mode():
        for step in range(steps):
            logits = model(tokens[:, -WINDOW:]) + closing * (BIAS + BIAS_PER_STEP * step)
            if decoder is not None:
                decoder.mask_(logits)
            chosen = torch.multinomial(torch.softmax(logits, -1), 1, generator=random)
            if decoder is not None:
                decoder.advance_(chosen[:, 0])
            count += int((~ended).sum())
            tokens = torch.cat([tokens, chosen], dim=1)
            ended |= torch.isin(chosen[:, 0], ends)
            if ended.all():
                break
    seconds = time.perf_counter() - began
    stop = set(vocab.end_of_turn)
    texts, verdicts = [], []
    for row, done in zip(tokens[:, 1:].tolist(), ended.tolist()):
        data = bytearray()
        for token in row:
            if token in stop:
                break
            data += vocab.token(token)
        texts.append(data.decode(errors="replace"))
        verdicts.append(verdict(spec, texts[-1]) if done else "does not end")
    return Side(texts, ended.tolist(), verdicts, count, seconds)


def verdict(spec: Spec, text: str) -> str | None:
    """What is wrong with a call, by Python's json and, where it is installed, jsonschema; None for nothing."""
    try:
        call = json.loads(text)
    except ValueError:
        return "no JSON"
    if not isinstance(call, dict) or call.keys() != {"name", "arguments"}:
        return "no call"
    tool = next((tool for tool in spec.tools if tool.name == call["name"]), None)
    if tool is None:
        return "no such tool"
    try:
        import jsonschema  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None if isinstance(call["arguments"], dict) else "arguments are no object"
    wrong = next(jsonschema.Draft202012Validator(tool.schema).iter_errors(call["arguments"]), None)
    return None if wrong is None else f"wrong arguments: {wrong.message[:40]}"


def _facts(side: Side) -> dict[str, Any]:
    return {
        "valid": side.valid,
        "ended": sum(side.ended),
        "tokens": side.tokens,
        "tokens_per_second": round(side.tokens / side.seconds),
        "texts": side.texts,
        "verdicts": side.verdicts,
    }


def _print(spec: Spec, held: Side, free: Side, parameters: int) -> None:
    from rich.table import Table
    from rich.text import Text

    rows = len(held.texts)
    table = Table(title=f"{rows} calls by a transformer of {parameters:,} random weights", show_lines=False)
    table.add_column("with the bundle", ratio=3)
    table.add_column("", no_wrap=True)
    table.add_column("without", ratio=2)
    table.add_column("", no_wrap=True)
    for i in range(min(rows, 8)):
        table.add_row(
            _line(held.texts[i]),
            _mark(held.verdicts[i]),
            _line(free.texts[i], 40),
            _mark(free.verdicts[i]),
        )
    out = console()
    out.print(table)
    if rows > 8:
        out.print(f"and {rows - 8} more rows")
    totals = Table(show_header=True, box=None, pad_edge=False)
    for name in ("", "valid", "invalid", "ended", "tokens", "tokens/s"):
        totals.add_column(name, justify="left" if not name else "right")
    for name, side in (("with the bundle", held), ("without", free)):
        rate = f"{side.tokens / side.seconds:,.0f}"
        numbers = (side.valid, rows - side.valid, sum(side.ended), side.tokens)
        totals.add_row(name, *(f"{number:,}" for number in numbers), rate)
    out.print(totals)
    names = ", ".join(tool.name for tool in spec.tools)
    out.print(
        Text(
            f"tools: {names}. On both sides the logits of tokens that close something (quotes, brackets, end of turn) "
            f"are raised by {BIAS:g} + {BIAS_PER_STEP:g} a step, so that random texts end."
        )
    )


def _line(text: str, most: int = 160) -> Any:
    """One text on one line, cut; control characters are shown as dots."""
    from rich.text import Text

    shown = " ".join("".join(c if c.isprintable() or c in "\n\t\r" else "·" for c in text).split())
    return Text(shown if len(shown) <= most else shown[: most - 1] + "…")


def _mark(verdict: str | None) -> Any:
    from rich.text import Text

    return Text("valid", style="green") if verdict is None else Text(verdict.split(":")[0], style="red")
