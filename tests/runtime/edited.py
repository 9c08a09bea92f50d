"""Bundles with edited tables and meta, opened and used under checked kernels: each is refused, or used without a crash.

    python -m tests.runtime.edited FOLDER FIRST COUNT    edits number FIRST to FIRST + COUNT - 1 of FOLDER's bundles

Every edit is written with right digests and opened twice, with kernels and in plain passes, which must agree. What
opens is used: choices of tools, masks, tokens, budgets, drafts, reading and writing. Only toolc's own errors may come
of that, and each edit has SECONDS. An edit is known by its number alone.

Leaves out   which bundles: test_edited.py writes them, since the compiler is not to be compiled with checks.
"""

from __future__ import annotations

import faulthandler
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from toolc.runtime import subset

from . import guarded

kernels = guarded.load()

from toolc.runtime import BatchMatcher, Bundle, Matcher, Reader, Vocab  # noqa: E402
from toolc.runtime.calls.writer import write_calls  # noqa: E402
from toolc.runtime.device.relocate import device_bytes  # noqa: E402
from toolc.runtime.errors import ToolcError  # noqa: E402
from toolc.runtime.format import checks, packing  # noqa: E402
from toolc.runtime.format.bundle import MAGIC, VERSION  # noqa: E402
from toolc.runtime.format.container import Contents  # noqa: E402
from toolc.runtime.format.tables import NEVER, TABLES  # noqa: E402
from toolc.runtime.host.shared import Shared  # noqa: E402

SECONDS = 60
DECODED = 12
"""One of so many that open is used on tensors, too, which takes most of the time."""
STEPS = 8
COMBS = ("delta", "return", "chain")
_EXTREMES = (-(1 << 31), -2, -1, 0, 1, 2, 3, 4, 5, 7, 255, 256, NEVER - 1, NEVER, NEVER + 1, (1 << 30) - 1, 1 << 30,
             (1 << 31) - 2, (1 << 31) - 1, 0x7FFFFFF0)  # fmt: skip
_VALUES: tuple[Any, ...] = (None, True, False, -1, 0, 1, 2, 7, 1 << 16, 1 << 40, 0.5, "", "abc", "json", b"x", [], {})

Arrays = dict[str, np.ndarray]
Meta = dict[str, Any]


def edited(number: int, bundles: list[Bundle]) -> tuple[Bundle, Arrays, Meta, list[str]]:
    """An edit: the bundle, its arrays and meta after it, and what was done."""
    dice = random.Random(number)
    bundle = dice.choice(bundles)
    arrays = {name: array.copy() for name, array in bundle.tables.arrays().items()}
    meta: Meta = json.loads(json.dumps(bundle.meta))
    done = []
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        edit = dice.choice(_EDITS)
        done.append(f"{edit.__name__.strip('_')} {edit(dice, arrays, meta)}")
    return bundle, arrays, meta, done


def _some(dice: random.Random, arrays: Arrays) -> str:
    return dice.choice([name for name in TABLES if arrays[name].size])


def _value(dice: random.Random, arrays: Arrays, array: np.ndarray, old: int) -> int:
    """One that is near, extreme, there already, or a size of something."""
    kind = dice.randrange(5)
    if kind == 0:
        return old + dice.choice((-8, -4, -2, -1, 1, 2, 4, 8))
    if kind == 1:
        return dice.choice(_EXTREMES)
    if kind == 2:
        return int(dice.choice(array))
    if kind == 3:
        return len(arrays[dice.choice(list(arrays))]) * dice.choice((1, 1, 4, 8)) + dice.choice((-1, 0, 1))
    return dice.randrange(max(1, 2 * abs(old) + 2))


def _wrapped(array: np.ndarray, value: int) -> int:
    bits = 8 * array.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if array.dtype.kind == "i" and value >> (bits - 1) else value


def _cell(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    name = _some(dice, arrays)
    flat = arrays[name].reshape(-1)
    place = dice.randrange(flat.size)
    width = flat.size // len(arrays[name])
    flat[place] = _wrapped(flat, _value(dice, arrays, flat[place % width :: width], int(flat[place])))
    return f"{name}[{place}]={flat[place]}"


def _column(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """All numbers of a column are one."""
    name = _some(dice, arrays)
    array = arrays[name].reshape(len(arrays[name]), -1)
    k = dice.randrange(array.shape[1])
    chosen = slice(None) if dice.random() < 0.5 else np.array([dice.random() < 0.3 for _ in range(len(array))])
    array[chosen, k] = value = _wrapped(array, _value(dice, arrays, array[:, k], int(array[0, k])))
    return f"{name}[:,{k}]={value}"


def _comb(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """Entries of a comb get another owner, and a value."""
    name = dice.choice(COMBS)
    array = arrays[name]
    if not len(array):
        return name
    many = dice.random() < 0.4
    places = np.arange(len(array)) if many else np.array([dice.randrange(len(array)) for _ in range(3)])
    owner = dice.choice((-1, 0, int(dice.choice(places)), int(dice.choice(array[:, 0])), (1 << 31) - 1))
    array[places, 0] = owner
    if dice.random() < 0.7:
        array[places, 1] = _wrapped(array, _value(dice, arrays, array[:, 1], int(array[places[0], 1])))
    return f"{name} {'all' if many else places.tolist()} owner {owner} value {array[places[0], 1]}"


def _moved(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """Rows change places, or one stands twice."""
    name = _some(dice, arrays)
    array = arrays[name]
    a, b = dice.randrange(len(array)), dice.randrange(len(array))
    array[a] = array[b].copy()
    if dice.random() < 0.3:
        arrays[name] = np.roll(array, dice.randrange(1, 4), axis=0)
    return f"{name} {b} to {a}"


def _sized(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """Arrays of one length are cut, or their last row stands several times."""
    name = dice.choice(list(TABLES))
    size = len(arrays[name])
    names = [name] if dice.random() < 0.3 else [n for n in TABLES if len(arrays[n]) == size and n != "dense"]
    more = dice.choice((-size, -2, -1, 1, 1, 2, 5))
    for n in names:
        array = arrays[n]
        last = array[-1:] if size else np.zeros((1, *array.shape[1:]), array.dtype)
        arrays[n] = array[:more].copy() if more < 0 else np.concatenate([array, *more * [last]])
    return f"{names} {more}"


def _span(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """Breakpoints of a list, or of all."""
    name = dice.choice(("breaks", "close_breaks"))
    array = arrays[name]
    if not array.size:
        width = dice.choice((1, 2, 65))
        arrays[name] = array = np.zeros((len(array), width, 2), np.int32)
    if array.size:
        array[dice.randrange(len(array)), dice.randrange(array.shape[1])] = dice.choice(
            ((1, 1), (2, 2), (5, 3), (0, 1), (1, 5), (1 << 30, 1), (3, 0), (2, -1))
        )
    return name


def _narrowing(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    states = len(arrays["state_cell"])
    few = sorted(dice.sample(range(states), min(states, 2)))  # a bundle may have been edited to have one state
    chosen = range(dice.choice((0, 1, 2)), states) if dice.random() < 0.5 else few
    arrays["narrowing"] = np.array(list(chosen), np.int32)
    meta["separable"] = True
    return "all" if len(chosen) > 2 else str(list(chosen))


def _field(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """A field of the meta, or of what is in it, becomes anything."""
    at: Any = meta
    path = []
    while True:
        if not at:
            return "nothing"
        key = dice.choice(list(at)) if isinstance(at, dict) else dice.randrange(len(at))
        path.append(key)
        if not isinstance(at[key], (dict, list)) or not at[key] or dice.random() < 0.4:
            break
        at = at[key]
    if dice.random() < 0.15:
        del at[key]
        return f"{path} gone"
    old = at[key]
    at[key] = old + dice.choice((-1, 1)) if type(old) is int and dice.random() < 0.5 else dice.choice(_VALUES)
    return f"{path}={at[key]!r}"


def _told(dice: random.Random, arrays: Arrays, meta: Meta) -> str:
    """Fields that say something about states and tools."""
    states = len(arrays["state_cell"])
    key, value = dice.choice(
        (
            ("ends", dice.choice((7, "abc", [5], [[[1], [0]]], [[2, [0]]], [[2, [9]]], [[states, [0]]], [[3, [0]]]))),
            ("entry", {"start": dice.randrange(states + 2)}),
            ("soft_depth", dice.choice((0, 1, 2, 1 << 16))),
            ("capacity", dice.choice((0, 1, 2, 300))),
            ("max_chain", dice.choice((0, 1, 7, 1 << 16))),
            ("subset", dice.choice(([], ["w"], ["nobody"], [3], "w"))),
            ("arguments", dice.choice(({"encoding": "bare", "quote": [""]}, {"encoding": "elements", "parts": []}, {},
                                       {"encoding": "parameters", "constants": 3}, {"encoding": "request"}))),
            ("unheard-of", dice.choice(_VALUES)),
        )
    )  # fmt: skip
    meta[key] = value
    return f"{key}={value!r}"


_EDITS: tuple[Callable[[random.Random, Arrays, Meta], str], ...] = (
    *4 * (_cell,), *3 * (_column,), *3 * (_comb,), _moved, _moved, _sized, _span, _span, _narrowing, _narrowing, _field,
    _told,
)  # fmt: skip


def opened(data: bytes, vocab: Vocab) -> Bundle | None:
    """The bundle, where both ways of reading it take it; None where both refuse it."""
    found: list[Bundle | None] = []
    for pays in (True, False):
        for module in (checks, packing):
            module.kernels_pay = lambda *_, pays=pays: pays  # type: ignore[attr-defined]
        try:
            found.append(Bundle.open(data, vocab))
        except ToolcError:
            found.append(None)
    assert (found[0] is None) == (found[1] is None), "kernels and plain passes disagree"
    return found[0]


def use(bundle: Bundle, dice: random.Random, decode: bool) -> None:
    """All that is done with a bundle; errors of toolc may come of each part."""
    parts: list[Callable[[], None]] = [lambda: _match(bundle, dice), lambda: _read(bundle, dice), lambda: _more(bundle)]
    for name in [str(tool["name"]) for tool in bundle.tools]:
        parts.append(lambda name=name: _match(subset(bundle, [name]), dice))  # type: ignore[misc]
        parts.append(lambda name=name: _write(bundle, name))  # type: ignore[misc]
    if decode:
        parts.append(lambda: _decode(bundle, dice))
    for part in parts:
        try:
            part()
        except ToolcError:
            continue


def _match(bundle: Bundle, dice: random.Random) -> None:
    entry = dice.choice(list(bundle.entry))
    need = bundle.min_tokens[entry]
    for budget in (None, need):
        m = Matcher(bundle, entry, budget)
        for _ in range(STEPS):
            allowed = m.allowed_tokens()
            m.rows(), m.bound, m.closing, m.forced(), m.expected_bytes(), m.is_complete
            if not m.is_finished and allowed.size:
                m.try_advance(int(dice.choice(allowed)))
            m.try_advance(dice.randrange(bundle.vocab.size))
        m.fork().rollback(min(2, len(m)))
    batch = BatchMatcher([bundle, None, bundle])
    masks = batch.new_masks()
    guarded.track(masks)
    batch.fill(masks)


def _read(bundle: Bundle, dice: random.Random) -> None:
    entry = dice.choice(list(bundle.entry))
    m, reader = Matcher(bundle, entry), Reader(bundle, entry)
    for _ in range(2 * STEPS):
        allowed = m.allowed_tokens()
        if not allowed.size:
            break
        token = int(dice.choice(allowed))
        reader.feed(token)
        m.try_advance(token)
    reader.finish()


def _write(bundle: Bundle, name: str) -> None:
    for arguments in ({}, {"a": 1}):
        write_calls(Reader(bundle), [(name, arguments)])


def _more(bundle: Bundle) -> None:
    device_bytes(bundle)
    bundle.encode()


def _decode(bundle: Bundle, dice: random.Random) -> None:
    import torch

    from toolc.runtime import Decoder

    decoder = Decoder(bundle, 3, history=4, check=False)
    size = bundle.vocab.size
    decoder.draft(torch.tensor([[dice.randrange(size) for _ in range(3)] for _ in range(3)]))
    for _ in range(4):
        decoder.mask_(torch.zeros(3, size))
        decoder.forced()
        decoder.advance_(torch.tensor([dice.randrange(size) for _ in range(3)]))
    decoder.rollback_(2)


def main(folder: Path, first: int, count: int) -> None:
    """Run edits; print how many came to what. `last` in the folder is the one that runs."""
    vocabs: dict[str, Vocab] = {}
    bundles = []
    for path in sorted(folder.glob("*.toolc")):
        bundle = Bundle.open(path)
        vocab = vocabs.setdefault(bundle.vocab.digest, bundle.vocab)
        bundles.append(Bundle(bundle.tables, bundle.meta, vocab, path.name))
    for vocab in vocabs.values():
        Shared.of(vocab)
    kept, came, begun = guarded.tracked(), Counter[str](), time.monotonic()
    for bundle in bundles:
        use(bundle, random.Random(0), True)
    for number in range(first, first + count):
        guarded.forget(kept)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        bundle, arrays, meta, done = edited(number, bundles)
        (folder / "last").write_text(f"edit {number} of {bundle.name}: {'; '.join(done)}")
        found = opened(Contents(MAGIC, VERSION, meta, arrays).encode(), bundle.vocab)
        if found is not None:
            use(found, random.Random(number), number % DECODED == 0)
        came["refused" if found is None else "used"] += 1
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({**came, "seconds": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
