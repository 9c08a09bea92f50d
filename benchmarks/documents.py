"""Whole documents, as vendors publish them: seconds, size and memory of one bundle for all operations of each.

    python -m benchmarks.documents [NAME …] [--shared ../shared] [--protocol hermes] [--against CHECKOUT]

A name is the beginning of a file's name in ``data/specs``; without any, all documents and lists are compiled. Each
compiles in a process of its own, which has compiled a small list before, with one job and without parts kept on disk.
What cannot be compiled is left out (``skip``). Prints a Markdown table.

    operations   that are in the bundle, and of how many
    seconds      of the processor, to read, compile and write
    MB           of the file;  peak MB: most memory of the process
    against      the same of another checkout, measured in turn; operations refused there have no figures

Leaves out   growth over the number of tools: see growth.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from .markdown import table

WARM = [{"name": "warm", "input_schema": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}}]
LIMIT = 1800.0  # seconds


def measure(file: Path, tokenizer: str, protocol: str) -> dict[str, Any]:
    """Compile one document; any checkout of toolc can do this."""
    from toolc.compiler import Budget, Options, compile_tools
    from toolc.compiler.errors import ToolcError
    from toolc.compiler.lift.vocab import load_vocab

    vocab = load_vocab(tokenizer)
    name = file.name.removesuffix(".gz")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TOOLC_CACHE"] = folder
        skip = {"skip": True} if "skip" in {one.name for one in fields(Options)} else {}
        options = Options(
            protocol=protocol, jobs=1, budget=Budget(seconds=LIMIT, states=1 << 24, bytes=1 << 34), **skip
        )
        compile_tools(WARM, vocab, options=options).write(Path(folder) / "warm.toolc")
        source, bundle = Path(folder) / name, Path(folder) / "bundle.toolc"
        source.write_bytes(gzip.decompress(file.read_bytes()))
        began, found = time.process_time(), {"document": name.partition(".")[0]}
        try:
            made = compile_tools(source, vocab, options=options)
            made.write(bundle)
        except ToolcError as error:
            return {**found, "error": " ".join(str(error).split())}
        return {
            **found,
            "tools": len(made.report["tools"]),
            "skipped": len(made.report.get("skipped", ())),
            "seconds": time.process_time() - began,
            "bytes": bundle.stat().st_size,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "states": made.report["counts"]["states"],
        }


def asked(file: Path, options: argparse.Namespace, checkout: Path) -> dict[str, Any]:
    """What a process of a checkout measures; this file stands in for its own."""
    code = "import runpy, sys; sys.argv[0] = 'documents'; runpy.run_module('benchmarks.documents', run_name='__main__')"
    command = [sys.executable, "-c", code, str(file), "--measure", "--tokenizer", options.tokenizer]
    paths = [str(checkout / ".mypy_path"), str(Path(__file__).parents[1])]  # `make lint` makes the first
    done = subprocess.run(
        [*command, "--protocol", options.protocol],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def figures(found: dict[str, Any]) -> list[str]:
    """Of a table: operations, seconds, MB, peak MB."""
    if "error" in found:
        return [found["error"][:80], "", "", ""]
    count = f"{found['tools']:,}" + (f" of {found['tools'] + found['skipped']:,}" if found["skipped"] else "")
    return [count, f"{found['seconds']:.1f}", f"{found['bytes'] / 1e6:.2f}", f"{found['peak'] / 1e6:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--protocol", default="hermes")
    parser.add_argument("--against", type=Path, help="another checkout of toolc")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tokenizer = options.tokenizer or str(options.shared / "tokenizers" / "llama3.json")
    if options.measure:
        print(json.dumps(measure(Path(options.names[0]), options.tokenizer, options.protocol)))
        return
    here = Path(__file__).parents[1]
    checkouts = [here] if options.against is None else [here, options.against]
    files = sorted(file.resolve() for file in (options.shared / "data" / "specs").glob("*/*.gz"))
    head = ["document", "operations", "seconds", "MB", "peak MB"]
    lines = []
    for file in files:
        if options.names and not file.name.startswith(tuple(options.names)):
            continue
        found = [asked(file, options, checkout) for checkout in checkouts]
        lines.append([file.name.partition(".")[0], *(cell for one in found for cell in figures(one))])
        print(*lines[-1], sep="\t", file=sys.stderr, flush=True)
    print(table([*head, *(f"before: {name}" for name in head[1:] if options.against)], lines))


if __name__ == "__main__":
    main()
