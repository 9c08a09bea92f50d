"""Drafts of a constrained sequence: what they hold, and that they change nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tests.speculate.small import bundle, encoder
from toolc.runtime import DecodeError, Matcher, Reader
from toolc.runtime.calls.writer import write_call
from toolc.runtime.speculate.drafting import DraftedSequence, Guess, RestOfCall

END = tuple(int(token) for token in bundle().tables.end_of_turn_tokens)


def mask_of(text: DraftedSequence | Matcher) -> list[int]:
    mask = np.full(bundle().vocab.words + 1, 0xFFFFFFFF, np.uint32)
    if isinstance(text, Matcher):
        mask[:] = 0
    text.fill(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def walk(text: DraftedSequence, dice: random.Random, most: int = 200) -> list[int]:
    """Tokens at random, up to the end of turn."""
    said: list[int] = []
    while not text.is_finished and len(said) < most:
        allowed = mask_of(text)
        token = dice.choice([one for one in allowed if one in END] or allowed)
        assert text.read(token)
        said.append(token)
    return said


@pytest.mark.parametrize("seed", range(20))
def test_masks_are_those_of_a_matcher_with_and_without_drafts(seed: int) -> None:
    dice = random.Random(seed)
    text, matcher = DraftedSequence(bundle(), "required"), Matcher(bundle(), "required")
    while not matcher.is_finished and len(matcher) < 120:
        before = list(text.tokens)
        draft = text.draft(dice.randint(1, 9))
        assert text.tokens == before
        assert text.allows(draft) == len(draft)
        assert not set(draft) & set(END)
        assert text.tokens == before
        assert mask_of(text) == mask_of(matcher)
        token = draft[0] if draft and dice.random() < 0.8 else dice.choice(mask_of(matcher))
        assert text.read(token) is matcher.try_advance(token) is True


def test_what_one_token_can_follow_is_drafted_to_its_end() -> None:
    """Wherever a mask has one token, that is drafted, unless it ends the turn."""
    for seed in range(10):
        dice, text = random.Random(seed), DraftedSequence(bundle(), "required")
        while not text.is_finished and len(text) < 120:
            allowed = mask_of(text)
            if len(allowed) == 1 and allowed[0] not in END:
                assert text.draft(1) == allowed
            text.read(dice.choice(allowed))


def test_a_draft_is_no_longer_than_asked() -> None:
    text = DraftedSequence(bundle(), "required/one")
    for most in range(8):
        assert len(text.draft(most)) <= most
    assert text.draft(0) == []


def guess_from(text: DraftedSequence, name: str, arguments: dict[str, object]) -> tuple[Guess, list[int]]:
    """A guess of the rest of a call, and its tokens."""
    reader = Reader(bundle(), text.entry)
    for token in text.tokens:
        reader.feed(token)
    rest = RestOfCall(bundle(), encoder())
    more = rest.text(reader, name, arguments)
    return Guess(len(text), reader.data, more, rest), rest.after(reader.data, more)


def begun_call() -> tuple[DraftedSequence, str, dict[str, object], list[int]]:
    """A sequence whose call has just got its name, the call, and the rest of it."""
    written = write_call(Reader(bundle(), "required/one"), "look", {"place": "Chur", "days": 3})
    assert written is not None
    tokens = encoder()(written.text.decode())
    text, reader = DraftedSequence(bundle(), "required/one"), Reader(bundle(), "required/one")
    for token in tokens:
        assert text.read(token)
        if any(event.kind == "name" for event in reader.feed(token)):
            break
    return text, "look", {"place": "Chur", "days": 3}, tokens[len(text) :]


def test_the_rest_of_a_call_is_drafted_and_left_where_something_else_is_said() -> None:
    text, name, arguments, _ = begun_call()
    guess, tokens = guess_from(text, name, arguments)
    assert tokens
    text.guess(guess)
    assert text.draft(len(tokens)) == tokens
    for n, token in enumerate(tokens[:-1]):
        assert text.read(token)
        assert text.draft(len(tokens))[: len(tokens) - n - 1] == tokens[n + 1 :]
    other, *_ = begun_call()
    other.guess(guess_from(other, name, {**arguments, "place": "Bern"})[0])
    while len(other) < len(text) and other.read(text.tokens[len(other)]):  # Chur and the rest
        pass
    assert len(other) == len(text) and not other._guess.after(other.tokens[other._guess.position :])  # type: ignore[union-attr]


def test_the_rest_of_a_call_is_cut_anew_where_the_model_cuts_it_otherwise() -> None:
    """The same text in single bytes for a while: the draft goes on with what is left of it."""
    text, name, arguments, _ = begun_call()
    guess, tokens = guess_from(text, name, arguments)
    text.guess(guess)
    byte_tokens = {bundle().vocab.token(token): token for token in range(bundle().vocab.size)}
    whole = b"".join(map(guess.rest.shown, tokens))
    for n in range(12):
        token = byte_tokens[whole[n : n + 1]]
        assert text.read(token)
        draft = text.draft(64)
        said = whole[: n + 1] + b"".join(map(guess.rest.shown, draft))
        assert said.startswith(whole) or whole.startswith(said)
        assert len(said) > n + 8


def finished(seed: int = 1) -> DraftedSequence:
    text = DraftedSequence(bundle(), "required/one")
    walk(text, random.Random(seed))
    assert text.is_finished
    return text


@pytest.mark.parametrize("inserted", [[5], [7, 8, 9], [*END, 3, *END, 4]])
def test_nothing_but_what_is_inserted_is_allowed_then_a_turn_begins(inserted: Sequence[int]) -> None:
    text = finished()
    length = len(text)
    text.insert(inserted)
    assert text.is_inserting and not text.is_finished
    assert text.spans == [(length, length + len(inserted))] and text.turn == length + len(inserted)
    assert text.draft(len(inserted)) == list(inserted)
    assert text.draft(1) == list(inserted[:1])
    for n, token in enumerate(inserted):
        assert text.is_inserted(length + n)
        assert mask_of(text) == [token]
        assert not text.read(token + 1)
        assert text.read(token)
    assert not text.is_inserted(len(text))
    assert mask_of(text) == mask_of(Matcher(bundle(), "required/one"))
    text.rollback(len(inserted))
    assert mask_of(text) == [inserted[0]]
    assert text.draft(64)[: len(inserted)] == list(inserted)
    for token in inserted:
        assert text.read(token)
    walk(text, random.Random(3))
    assert text.is_finished


def test_a_draft_goes_on_behind_what_is_inserted() -> None:
    text = finished()
    text.insert([5, 6])
    start = DraftedSequence(bundle(), "required/one").draft(4)
    assert start and text.draft(2 + len(start)) == [5, 6, *start]


def test_rollback_is_exact_across_turns() -> None:
    dice = random.Random(5)
    text = finished()
    text.insert([5, 6, 7])
    length, masks = len(text), []
    for _ in range(20):
        masks.append(mask_of(text))
        assert text.read(dice.choice(masks[-1]))
    while len(text) > length:
        text.rollback(1)
        assert mask_of(text) == masks[len(text) - length]
    with pytest.raises(DecodeError, match="cannot roll back"):
        text.rollback(len(text) + 1)


def test_a_budget_is_of_one_turn() -> None:
    need = bundle().min_tokens["required/one"]
    assert need is not None
    text = DraftedSequence(bundle(), "required/one", need)
    assert len(walk(text, random.Random(2))) <= need
    text.insert([5], need + 3)
    assert text.read(5)
    assert len(walk(text, random.Random(2))) <= need + 3
