"""Every BFCL function document in every protocol: does it compile, are its ground-truth calls accepted, and are
mutations of them refused, whenever another reading of the text says that they are no valid calls?

    python -m benchmarks.bfcl [--protocols hermes,llama3] [--limit 50] [--data ../shared/data/bfcl]

Prints one line a protocol; every row that fails is named. A document is one spec with one bundle.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from tests.cases.bfcl import rows
from tests.cases.protocols import FAMILIES, is_valid, mutations
from tests.protocols.vocabularies import vocab_for
from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.commands.check import check
from toolc.runtime.errors import ToolcError

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocols", default=",".join(FAMILIES))
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "bfcl")
    options = parser.parse_args()
    data = list(rows(options.data))
    if options.limit:
        data = data[:: max(1, len(data) // options.limit)]
    for name in options.protocols.split(","):
        family, vocab = FAMILIES[name], vocab_for(name)
        begin = time.perf_counter()
        compiled = accepted = left_out = calls = refused = wrong = 0
        rng = random.Random(name)
        for row in data:
            try:
                bundle = compile_tools(row.functions, vocab, options=Options(protocol=name, named=False)).bundle
            except ToolcError as error:
                print(f"  {name} {row.id}: {str(error).splitlines()[0]} {error.message}")
                continue
            compiled += 1
            schemas = {tool.name: tool.schema for tool in read_spec(row.functions).tools}
            for call in row.calls:
                if family.read(family.write([call]), schemas) != [call]:
                    left_out += 1  # by position: an argument before a given one was left out
                    continue
                calls += 1
                result = check(bundle, family.write([call]).encode(), "required/one")
                accepted += result["accepted"]
                if not result["accepted"]:
                    read = family.write([call]).encode()[: result["offset"]].decode(errors="replace")
                    print(f"  {name} {row.id}: …{read[-60:]}◂ {result['found']}, {result['expected'][:3]}")
                for text in mutations(family, call, rng):
                    if not is_valid(family.read(text, schemas), schemas):
                        passed = check(bundle, text.encode(), "required")["accepted"]
                        refused, wrong = refused + (not passed), wrong + passed
                        if passed:
                            print(f"  {name} {row.id}: accepted {text!r}")
        seconds = time.perf_counter() - begin
        print(
            f"{name}: {compiled} of {len(data)} documents compile, {accepted} of {calls} calls accepted "
            f"({left_out} cannot be written), "
            f"{refused} of {refused + wrong} mutations refused, {seconds:.0f} s"
        )


if __name__ == "__main__":
    main()
