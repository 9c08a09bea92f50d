"""Every BFCL function document in every protocol: does it compile, are its ground-truth calls accepted, are they read
back as the same calls, and are mutations refused, whenever another reading says that they are no valid calls?

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
from toolc.runtime import read_calls
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
        compiled = accepted = same = left_out = calls = refused = wrong = 0
        rng = random.Random(name)
        for row in data:
            try:
                bundle = compile_tools(row.functions, vocab, options=Options(protocol=name, named=False)).bundle
            except ToolcError as error:
                print(f"  {name} {row.id}: {str(error).splitlines()[0]} {error.message}", flush=True)
                continue
            compiled += 1
            schemas = {tool.name: tool.schema for tool in read_spec(row.functions).tools}
            for call in row.calls:
                text = family.write([call])
                if family.read(text, schemas) != [call]:
                    left_out += 1  # by position: an argument before a given one was left out
                    continue
                calls += 1
                result = check(bundle, text.encode(), "required/one")
                accepted += result["accepted"]
                if not result["accepted"]:
                    read = text.encode()[: result["offset"]].decode(errors="replace")
                    print(f"  {name} {row.id}: …{read[-60:]}◂ {result['found']}, {result['expected'][:3]}", flush=True)
                else:
                    found = [(one.name, one.arguments) for one in read_calls(bundle, text, "required/one")]
                    same += found == [call]
                    if found != [call]:
                        print(f"  {name} {row.id}: {text!r} is read as {found}", flush=True)
                for mutated in mutations(family, call, rng):
                    if not is_valid(family.read(mutated, schemas), schemas):
                        passed = check(bundle, mutated.encode(), "required")["accepted"]
                        refused, wrong = refused + (not passed), wrong + passed
                        if passed:
                            print(f"  {name} {row.id}: accepted {mutated!r}", flush=True)
        seconds = time.perf_counter() - begin
        print(
            f"{name}: {compiled} of {len(data)} documents compile, {accepted} of {calls} calls accepted "
            f"({left_out} cannot be written), {same} read back, "
            f"{refused} of {refused + wrong} mutations refused, {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
