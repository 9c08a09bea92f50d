"""Rows as bitmasks (format/rows.py) against the sets of tokens of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from toolc.runtime.format import rows
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(12))]


@pytest.mark.parametrize("chunk", [1, 3, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_reference(kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK", chunk)
    made = bundle(kind)
    reference, size = Sequence.start(made), made.vocab.size
    wanted = [bits_of(reference.row(row), size) for row in range(made.tables.rows)]
    wanted.append(bits_of(made.tables.end_of_turn_tokens.tolist(), size))
    assert np.array_equal(np.concatenate(list(rows.expanded(made))), np.stack(wanted))
    some = np.array([made.tables.rows, 0, made.tables.rows - 1, 0])
    assert np.array_equal(np.concatenate(list(rows.expanded(made, some))), np.stack([wanted[n] for n in some]))
    assert not list(rows.expanded(made, some[:0]))
