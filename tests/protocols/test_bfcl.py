"""A sample of BFCL in every protocol; all of it: python -m benchmarks.bfcl."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cases.bfcl import rows
from tests.cases.codecs import Positional
from tests.cases.protocols import FAMILIES, is_valid, mutations
from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.commands.check import check
from toolc.runtime import read_calls

from .vocabularies import vocab_for


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_sample(name: str, shared: Path) -> None:
    data = list(rows(shared / "data" / "bfcl"))
    family, vocab, rng = FAMILIES[name], vocab_for(name), random.Random(name)
    for row in data[sorted(FAMILIES).index(name) :: 97]:
        bundle = compile_tools(row.functions, vocab, options=Options(protocol=name)).bundle
        schemas = {tool.name: tool.schema for tool in read_spec(row.functions).tools}
        for call in row.calls:
            text = family.write([call])
            if isinstance(family.codec, Positional) and family.read(text, schemas) != [call]:
                continue  # an argument before a given one was left out
            assert family.read(text, schemas) == [call]
            assert check(bundle, text.encode(), f"tool:{call[0]}")["accepted"], text
            assert [(one.name, one.arguments) for one in read_calls(bundle, text, "required")] == [call]
            for mutated in mutations(family, call, rng):
                if not is_valid(family.read(mutated, schemas), schemas):
                    assert not check(bundle, mutated.encode(), "required")["accepted"], mutated
