"""Copies, and what is sent to other processes: addresses of one process never reach another."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from toolc.compiler import compile_tools
from toolc.runtime import BatchMatcher, Bundle, DecodeError, Decoder, Matcher, TextStream, Vocab


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    path = tmp_path_factory.mktemp("copies") / "weather.toolc"
    compile_tools(repository / "tools_specs" / "weather.json").write(path)
    return path


def first_masks(bundle: Bundle) -> list[list[int]]:
    matcher, found = Matcher(bundle), []
    for _ in range(12):
        found.append(matcher.allowed_tokens().tolist())
        matcher.advance(found[-1][0])
    return found


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_bundle_outlives_the_one_that_it_was_copied_from(weather: Path, twin_of: Callable[[Bundle], Bundle]) -> None:
    bundle = Bundle.open(weather)
    expected, digest = first_masks(bundle), bundle.digest
    twin = twin_of(bundle)
    assert isinstance(twin.vocab, Vocab) and not {"_host", "_shared"} & {*vars(twin), *vars(twin.tables)}
    del bundle
    gc.collect()
    assert first_masks(twin) == expected and twin.digest == digest and twin.min_tokens


def test_a_bundle_in_another_process(weather: Path, tmp_path: Path) -> None:
    bundle = Bundle.open(weather)
    expected = Matcher(bundle).allowed_tokens().tolist()
    (tmp_path / "it").write_bytes(pickle.dumps(bundle))
    code = (
        "import pickle, sys\n"
        "from toolc.runtime import Matcher\n"
        "print(Matcher(pickle.load(open(sys.argv[1], 'rb'))).allowed_tokens().tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "it")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == str(expected), done.stderr


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy])
def test_a_matcher_is_copied_as_a_fork(weather: Path, twin_of: Callable[[Matcher], Matcher]) -> None:
    matcher = Matcher(Bundle.open(weather), budget=80)
    twin = twin_of(matcher)
    token = int(matcher.allowed_tokens()[0])
    twin.advance(token)
    assert (len(twin), len(matcher)) == (1, 0)
    matcher.advance(token)
    assert matcher.allowed_tokens().tolist() == twin.allowed_tokens().tolist() and matcher.left == twin.left


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy])
def test_a_decoder_is_copied_as_a_fork(weather: Path, twin_of: Callable[[Decoder], Decoder]) -> None:
    decoder = Decoder(Bundle.open(weather), 2)
    twin = twin_of(decoder)
    assert twin.arena is decoder.arena and twin in twin.arena.holders
    token = int(Matcher(decoder.arena.bundle(0)).allowed_tokens()[0])
    twin.advance_(torch.tensor([token, token]))
    assert twin.length.tolist() == [1, 1] and decoder.length.tolist() == [0, 0]
    with pytest.raises(TypeError, match="Decoder cannot be pickled"):
        pickle.dumps(decoder)


def test_what_cannot_be_copied_says_so(weather: Path) -> None:
    bundle = Bundle.open(weather)
    batch = BatchMatcher([bundle])
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="BatchMatcher cannot be"):
            action(batch)
    with pytest.raises(TypeError, match="Matcher cannot be pickled"):
        pickle.dumps(Matcher(bundle))


def test_tokens_are_whole_numbers(weather: Path) -> None:
    """A kernel would cut a float."""
    bundle = Bundle.open(weather)
    token = int(Matcher(bundle).allowed_tokens()[0])
    for wrong in (token + 0.7, str(token)):
        with pytest.raises(DecodeError, match="no integer"):
            Matcher(bundle).advance(wrong)  # type: ignore[arg-type]
        with pytest.raises(DecodeError, match="no integers"):
            BatchMatcher([bundle]).advance([wrong])  # type: ignore[list-item]
    for wrong in (-1, bundle.vocab.size, 2**63, -(2**70)):
        assert not Matcher(bundle).try_advance(wrong)
        with pytest.raises(DecodeError, match="no such token"):
            Matcher(bundle).advance(wrong)
    for right in (np.int64(token), np.array(token)):
        matcher = Matcher(bundle)
        matcher.advance(right)  # type: ignore[arg-type]
        assert len(matcher) == 1
        assert TextStream(bundle.vocab).push(right) == TextStream(bundle.vocab).push([token])  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="no such row"):
        BatchMatcher([bundle]).matcher(-1)
