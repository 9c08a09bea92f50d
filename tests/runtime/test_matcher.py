"""The host matcher against the plain specification and against brute force over the vocabulary."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from toolc.runtime import Bundle, DecodeError, Matcher
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(40))]
SIZES = [31, 32, 33, 63, 64, 65, 96, 97]


def same(matcher: Matcher, oracle: Sequence) -> np.ndarray:
    """Check everything visible; returns the mask."""
    words = matcher.bundle.vocab.words
    mask = np.full(words + 2, 0xFFFFFFFF, dtype=np.uint32)
    matcher.fill(mask)
    want = oracle.mask()
    assert (mask[:words] == bits_of(want, oracle.bundle.vocab.size)).all()
    assert not mask[words:].any()
    assert matcher.allowed_tokens().tolist() == sorted(want)
    assert (matcher.state, matcher.counter, matcher.stack) == (oracle.state, oracle.counter, oracle.stack)
    assert matcher.is_finished == (oracle.state == 1)
    assert matcher.is_complete == (oracle.reads([256]) is not None)
    assert matcher.expected_bytes() == bytes(b for b in range(256) if oracle.reads([b]) is not None)
    return mask


@pytest.mark.parametrize("form", ["memory", "file", "standalone"])
@pytest.mark.parametrize("kind", KINDS)
def test_walks_equal_the_specification(kind: str, form: str, tmp_path: Path) -> None:
    made = bundle(kind)
    if form != "memory":
        made.write(tmp_path / "b.toolc", standalone=form == "standalone")
        made = Bundle.open(tmp_path / "b.toolc", vocab=None if form == "standalone" else made.vocab)
    pick = random.Random(kind)
    for _ in range(3):
        matcher, oracle = Matcher(made), Sequence.start(made)
        trail = []
        for _ in range(40):
            if len(oracle.stack) > made.meta["capacity"] - 6:
                break
            same(matcher, oracle)
            if pick.random() < 0.2:
                assert oracle.mask() == oracle.brute_mask()
            token = pick.randrange(made.vocab.size)
            live = sorted(oracle.mask())
            if live and pick.random() < 0.8:
                token = pick.choice(live)
            before = oracle.copy()
            accepted = oracle.advance(token)
            assert matcher.try_advance(token) == accepted
            if accepted:
                trail.append(before)
                assert len(matcher) == len(trail)
            if trail and pick.random() < 0.1:
                back = pick.randint(1, len(trail))
                matcher.rollback(back)
                oracle = trail[-back].copy()
                del trail[-back:]


@pytest.mark.parametrize("size", SIZES)
def test_mask_widths(size: int) -> None:
    made = bundle("brackets", size)
    assert made.vocab.words == -(-size // 32)
    matcher, oracle = Matcher(made), Sequence.start(made)
    for token in (4, 4, 7, 7, 5, 6, 7, 5, 0, 3):
        same(matcher, oracle)
        assert oracle.mask() == oracle.brute_mask()
        assert matcher.try_advance(token) == oracle.advance(token)
    assert matcher.is_finished
    same(matcher, oracle)


def test_bit_31() -> None:
    made = bundle("brackets", 97)
    seen = {int(t) & 31 for t in Matcher(made).allowed_tokens()}
    for token in (31, 63, 95):
        oracle = Sequence.start(made)
        assert (token in oracle.mask()) == (token in Matcher(made).allowed_tokens())
    assert 31 in seen


def test_fork_reset_and_history() -> None:
    made = bundle("brackets")
    first = Matcher.from_tokens(made, [4, 4, 7])
    second = first.fork()
    first.advance(5)
    assert (first.depth, second.depth) == (1, 2)
    second.rollback(2)
    assert (second.depth, len(second)) == (1, 1)
    second.advance(7)
    assert first.depth == 1 and first.stack == [(0, 0)]
    first.reset()
    assert (len(first), first.depth, first.state) == (0, 0, made.meta["entry"]["start"])
    with pytest.raises(DecodeError, match="cannot roll back"):
        first.rollback()


def test_long_history_grows() -> None:
    made = bundle("counted")
    matcher, oracle = Matcher(made), Sequence.start(made)
    for token in [4] + [7, 7, 6, 5][:2] * 1:
        matcher.advance(token)
        oracle.advance(token)
    # "[aa" then many "[aa,]": the count starts anew each time
    for _ in range(300):
        for token in (4, 7, 7, 6, 5):
            assert matcher.try_advance(token) == oracle.advance(token)
    same(matcher, oracle)
    matcher.rollback(len(matcher))
    assert matcher.depth == 0


def test_refusal_names_token_state_and_bytes() -> None:
    made = bundle("brackets")
    matcher = Matcher.from_tokens(made, [4])
    with pytest.raises(DecodeError) as caught:
        matcher.advance(6)
    text = str(caught.value)
    for part in ("token 6, ','", "depth 1", "'['", "']'", "'a' 'b'"):
        assert part in text
    assert len(matcher) == 1
    with pytest.raises(DecodeError, match="no such token"):
        matcher.advance(made.vocab.size)
    with pytest.raises(DecodeError, match="no such token"):
        matcher.advance(-1)
    with pytest.raises(DecodeError, match="no such entry"):
        Matcher(made, entry="nowhere")
    part = next(i for i in range(4, 96) if made.vocab.token(i)[:2] in (b"a,", b"b,", b"a[", b"b["))
    with pytest.raises(DecodeError, match=r"of which b'[ab]' would be accepted"):
        Matcher.from_tokens(made, [7]).advance(part)


def test_bytes() -> None:
    made = bundle("brackets")
    matcher = Matcher(made)
    assert matcher.advance_bytes(b"[a,[b],x") == 7
    assert matcher.depth == 1
    matcher.rollback(3)
    assert matcher.depth == 2
    assert matcher.expected_bytes() == b"[]ab"
    assert Matcher(made).expected_special() == [1]


def test_mask_of_another_form_is_refused() -> None:
    made = bundle("brackets")
    for mask in (
        np.zeros(1, np.uint32),
        np.zeros(3, np.int64),
        np.zeros((3, 2), np.uint32)[:, 0],
        np.zeros((1, 3), np.uint32),
        [0, 0, 0],
        None,
    ):
        with pytest.raises(DecodeError, match="the mask"):
            Matcher(made).fill(mask)  # type: ignore[arg-type]


@pytest.mark.parametrize("left", ["40", 40.5, [40]])
def test_what_is_no_number_of_tokens_is_no_budget(left: object) -> None:
    matcher = Matcher(bundle("brackets"))
    with pytest.raises(DecodeError, match="no number of tokens"):
        matcher.limit(left)  # type: ignore[arg-type]
    assert matcher.left is None


@pytest.mark.parametrize("count", [0.5, 1.0, "1", None])
def test_rolling_back_by_no_whole_number(count: object) -> None:
    matcher = Matcher.from_tokens(bundle("brackets"), [4, 4])
    with pytest.raises(DecodeError, match="cannot roll back"):
        matcher.rollback(count)  # type: ignore[arg-type]
    assert len(matcher) == 2


def test_a_token_that_is_a_bool_is_refused_as_its_number() -> None:
    matcher = Matcher(bundle("brackets"))
    with pytest.raises(DecodeError, match=r"not allowed here; found token 0\b"):
        matcher.advance(False)
    with pytest.raises(DecodeError, match=r"not allowed here; found token 0\b"):
        raise matcher.refusal(False)


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_small_row_cache(rows: int) -> None:
    from toolc.runtime.host.shared import Host, Shared

    made = bundle("brackets")
    shared = Shared(made.vocab, row_bytes=rows * 4 * made.vocab.words)
    assert shared.slots == rows
    pairs = []
    for kind in ("brackets", "counted"):
        small = Bundle(bundle(kind).tables, bundle(kind).meta, bundle(kind).vocab)
        small.__dict__["_host"] = Host(small, shared)
        pairs.append((Matcher(small), Sequence.start(small)))
    for token in (4, 4, 7, 7, 5, 5):
        for _ in range(2):
            for matcher, oracle in pairs:
                same(matcher, oracle)
        for matcher, oracle in pairs:
            assert matcher.try_advance(token) == oracle.advance(token)


def test_every_prefix_of_a_slice() -> None:
    from toolc.runtime.host.shared import Host, Shared, host_of

    made = bundle("brackets", 97)
    t, v = made.tables, made.vocab
    for stride in (16, 3, 5):
        shared = Shared(v, stride=None if stride == 16 else stride)
        whole = np.diff(v.slice_token_offset) // stride
        count = whole + 2
        rows = np.zeros((int(count.sum()), v.words), np.uint32)
        first = (np.cumsum(count) - count).astype(np.int32)
        for s in range(count.size):
            low, high = v.slice_token_offset[s : s + 2]
            for k in range(count[s]):
                stop = high if k == count[s] - 1 else low + k * stride
                rows[first[s] + k] = bits_of(v.slice_tokens[low:stop].tolist(), v.size)
        assert shared.stride == stride
        assert (shared.arrays["prefix"] == rows).all() and (shared.arrays["prefix_first"] == first).all()
        small = Bundle(t, made.meta, v)
        small.__dict__["_host"] = Host(small, shared)
        out, oracle = np.zeros(v.words, np.uint32), Sequence.start(made)
        for row in range(t.rows):
            host_of(small).expand(row, out)
            assert (out == bits_of(oracle.row(row), v.size)).all()
