"""The ``toolc`` command: arguments and options; what each command does is in commands/.

Exit codes   0 success; 1 `check`: the text is not accepted, `demo`: an output is not valid; 2 wrong usage; 3 a spec,
             schema, grammar or tokenizer is refused; 4 a budget was passed; 5 a bundle is refused; 6 `--strict-report`:
             something is warned of; 70 a bug;
             130 interrupted.
Output       results on stdout, with --json one JSON object; errors, notes and progress on stderr.
Invariants   importing this loads click and nothing larger; a failing command leaves no file.
"""

from __future__ import annotations

import atexit
import gc
import math
import os
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from .commands.signals import end_at_once, end_on_signals
from .commands.terminal import end_as_asked, end_without_room, guarded
from .dialects import SYNTAXES
from .options import LIMITS, RELAXABLE, WORDS

Command = Callable[..., Any]


class Whitespace(click.ParamType):
    """``compact``, ``spaced``, ``pretty``, ``flexible`` or a number of blanks."""

    name = "compact|spaced|pretty|flexible|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        least, most = LIMITS["whitespace"]
        if isinstance(value, int) or value in WORDS["whitespace"]:
            return value
        if value.isascii() and value.isdigit() and len(value) <= len(str(most)) and least <= int(value) <= most:
            return int(value)
        words = ", ".join(WORDS["whitespace"])
        self.fail(f"{value!r} is none of {words}, nor a number from {least} to {most}", param, ctx)


class Finite(click.FloatRange):
    """A number of a range that is neither NaN nor infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number of this kind", param, ctx)
        return number


def _schema_options(command: Command) -> Command:
    for option in (
        click.option(
            "--syntax",
            type=click.Choice(SYNTAXES),
            help="What SPEC, a grammar, is written in.  [default: as the ending of its file says]",
        ),
        click.option(
            "--max-spec-bytes", type=click.IntRange(1, 1 << 32), help="Largest spec that is read.  [default: 32 MiB]"
        ),
        click.option(
            "--schemas",
            type=click.Path(file_okay=False),
            metavar="DIR",
            help="Where documents are that SPEC refers to, beside those in its own folder.",
        ),
        click.option("--lenient", is_flag=True, help="--skip, and --relax with every keyword that it takes."),
        click.option(
            "--relax",
            multiple=True,
            type=click.Choice(RELAXABLE),
            help="Leave out this keyword where it cannot be compiled exactly, and list it; may be repeated.",
        ),
        click.option(
            "--formats",
            default="assert",
            show_default=True,
            metavar="assert|annotate|NAMES",
            help="Enforce all formats, none, or those named, as in date,uuid.",
        ),
        click.option(
            "--repair",
            is_flag=True,
            help="Read what SPEC cannot mean as it must be meant, and list it: see docs/specs.md.",
        ),
        click.option(
            "--subtypes",
            is_flag=True,
            help="Read a parent schema with a discriminator as one of its subtypes, and list it.",
        ),
        click.option(
            "--canonical",
            is_flag=True,
            help="Where one text alone may follow, allow only the tokens that the tokenizer writes it with.",
        ),
        click.option("--skip", is_flag=True, help="Leave out tools that cannot be compiled, and list them."),
        click.option(
            "--except",
            "but",
            multiple=True,
            metavar="PATTERN",
            help="Leave these tools out: NAME, tag:TAG, method:GET or path:/v1/*; may be repeated.",
        ),
        click.option(
            "--only",
            multiple=True,
            metavar="PATTERN",
            help="Compile these tools alone, said as for --except.",
        ),
        click.option(
            "--key-order",
            type=click.Choice(WORDS["key_order"]),
            default="declared",
            show_default=True,
            help="Keys of objects as the schema lists them, or in every order where that can be kept.",
        ),
        click.option(
            "--digits", type=click.IntRange(*LIMITS["digits"]), help="Most digits before and after the point."
        ),
        click.option(
            "--whitespace",
            type=Whitespace(),
            default="spaced",
            show_default=True,
            help="Blanks between tokens of JSON: none, as json.dumps, with an indentation, any, or at most N in a gap.",
        ),
        click.option(
            "--named/--no-named", default=True, help="An entry for each tool, for a named tool_choice, or none."
        ),
        click.option(
            "--strict/--no-strict",
            default=None,
            help="Arguments meet the schema of their tool, or are any object.  [default: as each tool says]",
        ),
        click.option("--closed", is_flag=True, help="No arguments but those that the schema of a tool names."),
        click.option(
            "--response",
            type=click.Path(),
            metavar="FILE",
            help="JSON Schema of a structured response, the alternative to a call.",
        ),
        click.option(
            "--protocol",
            metavar="P",
            help="How calls are written: a protocol or model (see `toolc protocols`), a .lark file, or auto: as the "
            "chat template says.  [default: auto for a model with a chat template, else plain JSON]",
        ),
    ):
        command = option(command)
    return command


def _budget_options(command: Command) -> Command:
    for option in (
        click.option("--max-bytes", type=click.IntRange(1), help="Largest bundle."),
        click.option("--max-seconds", type=Finite(0, min_open=True), help="Longest compile."),
        click.option("--max-rows", type=click.IntRange(1), help="Most mask rows."),
        click.option("--max-pattern-states", type=click.IntRange(1), help="Most states of one pattern."),
        click.option("--max-states", type=click.IntRange(1), help="Most states of any kind."),
    ):
        command = option(command)
    return command


_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_vocab_option = click.option("--vocab", type=click.Path(), help="The vocab file, if it is neither inside nor beside.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="toolc", message="toolc %(version)s")
def cli() -> None:
    """Compile tool specs, JSON Schemas and Lark grammars to bundles for constrained decoding."""


@cli.command("compile")
@click.argument("specs", metavar="[SPEC]...", type=click.Path(allow_dash=True), nargs=-1)
@click.option("-o", "--output", type=click.Path(), help="The bundle.  [default: SPEC's name with .toolc, here]")
@click.option(
    "--tokenizer",
    "tokenizers",
    multiple=True,
    metavar="T",
    help="Tokenizer file, model folder or Hugging Face id; with --store it may be repeated.  [default: builtin]",
)
@click.option("--eos", multiple=True, metavar="NAME", help="A token that ends a turn, by name or id; may be repeated.")
@click.option(
    "--logits-width", type=click.IntRange(1, 1 << 24), help="Logits of the model.  [default: as its config.json says]"
)
@click.option(
    "--soft-depth",
    type=click.IntRange(*LIMITS["soft_depth"]),
    default=64,
    show_default=True,
    help="Nesting that is free.",
)
@click.option(
    "--max-depth",
    type=click.IntRange(*LIMITS["max_depth"]),
    help="Of a grammar that no stack can follow: so many rules may be open undecided.",
)
@click.option("--standalone", is_flag=True, help="Pack the vocabulary into the bundle.")
@click.option("--store", metavar="STORE", help="Compile into a store, a folder or URL, what it does not hold yet.")
@click.option("--store-bytes", type=click.IntRange(1), help="Size limit of the store, if it is a folder.")
@click.option("--sign", type=click.Path(), metavar="PEM", help="Sign with this Ed25519 private key, for --store.")
@click.option(
    "--jobs", type=click.IntRange(*LIMITS["jobs"]), help="Processes that compile.  [default: one for each core]"
)
@click.option("--ray", metavar="ADDRESS", help="Compile on this Ray cluster, for --store.")
@click.option("--report", type=click.Path(), help="Write what became of every spec to this JSON file, for --store.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option(
    "--strict-report", is_flag=True, help="What is warned of is an error: never written, misspelt, of a later draft."
)
@_schema_options
@_budget_options
@_json_option
@guarded
def compile_command(**options: Any) -> None:
    """Compile SPEC, a tools list, an OpenAPI document, a JSON Schema or a grammar, to a bundle.

    Without SPEC the toolc.yaml of this folder says what to compile; see docs/specs.md. With --store there may be many
    SPECs and folders of them; see docs/sharing.md.
    """
    from .commands.compile import run

    source = click.get_current_context().get_parameter_source
    run({name for name in options if source(name) is ParameterSource.COMMANDLINE}, **options)


@cli.command("warmup")
@click.option(
    "--jobs", type=click.IntRange(*LIMITS["jobs"]), help="Processes that compile.  [default: one for each core]"
)
@click.option(
    "--ship-into",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the kernels into this folder, for all processors of this kind; `make wheel` does.",
)
@_json_option
@guarded
def warmup_command(**options: Any) -> None:
    """Compile toolc's own kernels, which the first compile on a machine would do: for images, and idle minutes."""
    from .commands.warmup import run

    run(**options)


@cli.command("key")
@click.argument("spec", type=click.Path(allow_dash=True))
@click.option("--tokenizer", metavar="T", help="Tokenizer file, model folder or Hugging Face id.  [default: builtin]")
@click.option("--eos", multiple=True, metavar="NAME", help="A token that ends a turn, by name or id; may be repeated.")
@click.option(
    "--logits-width", type=click.IntRange(1, 1 << 24), help="Logits of the model.  [default: as its config.json says]"
)
@click.option(
    "--soft-depth",
    type=click.IntRange(*LIMITS["soft_depth"]),
    default=64,
    show_default=True,
    help="Nesting that is free.",
)
@click.option(
    "--max-depth",
    type=click.IntRange(*LIMITS["max_depth"]),
    help="Of a grammar that no stack can follow: so many rules may be open undecided.",
)
@_schema_options
@_budget_options
@_json_option
@guarded
def key_command(**options: Any) -> None:
    """Print the key under which stores hold what SPEC compiles to, without compiling it."""
    from .commands.store import key

    key(**options)


@cli.command("push")
@click.argument("store")
@click.argument("bundles", metavar="BUNDLE...", type=click.Path(), nargs=-1, required=True)
@click.option("--sign", type=click.Path(), metavar="PEM", help="Sign with this Ed25519 private key.")
@_vocab_option
@_json_option
@guarded
def push_command(**options: Any) -> None:
    """Put bundles into STORE, a folder or URL, and print their keys."""
    from .commands.store import push

    push(**options)


@cli.command("pull")
@click.argument("store")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@click.option("-o", "--output", default=".", show_default=True, type=click.Path(), help="The folder to write to.")
@click.option("--allow", multiple=True, metavar="PUB", help="A public key that may have signed them; may be repeated.")
@click.option("--standalone", is_flag=True, help="Pack the vocabulary into the bundles.")
@_json_option
@guarded
def pull_command(**options: Any) -> None:
    """Fetch bundles from STORE, verify them, and write them with their vocabs."""
    from .commands.store import pull

    pull(**options)


@cli.command("list")
@click.argument("store")
@click.option("--quick", is_flag=True, help="Keys and sizes only: headers are not read.")
@_json_option
@guarded
def list_command(**options: Any) -> None:
    """List the bundles of STORE, the most recently used first."""
    from .commands.store import show

    show(**options)


@cli.command("prune")
@click.argument("store")
@click.option("--max-bytes", type=click.IntRange(0), help="Until all files together have at most so many bytes.")
@click.option("--older-than", type=Finite(0), metavar="DAYS", help="Those not used for so many days.")
@click.option("--vocabs", is_flag=True, help="Also vocabs that no bundle needs; folders do that by themselves.")
@_json_option
@guarded
def prune_command(**options: Any) -> None:
    """Remove bundles from STORE, the least recently used first."""
    from .commands.store import prune

    prune(**options)


@cli.command("grammar")
@click.argument("spec", type=click.Path(allow_dash=True))
@_schema_options
@_json_option
@guarded
def grammar_command(**options: Any) -> None:
    """Print the Lark grammar that SPEC becomes."""
    from .commands.grammar import run

    run(**options)


@cli.command("inspect")
@click.argument("bundle", type=click.Path())
@_vocab_option
@click.option("--keywords", is_flag=True, help="Show what became of every keyword, place by place.")
@click.option("--html", type=click.Path(dir_okay=False), help="Write a page for a browser to this file.")
@_json_option
@guarded
def inspect_command(**options: Any) -> None:
    """Show what BUNDLE holds: tools, figures, tokenizer, provenance, restrictions."""
    from .commands.inspect import run

    run(**options)


@cli.command("check")
@click.argument("bundle", type=click.Path())
@click.argument("text")
@_vocab_option
@click.option("--entry", default="start", show_default=True, help="Where the text begins: see `toolc inspect`.")
@_json_option
@guarded
def check_command(**options: Any) -> None:
    """Say whether BUNDLE accepts TEXT, or where it stops and what was expected there.

    TEXT is the text itself, - for standard input, or @FILE; a last newline of either is left out.
    """
    from .commands.check import run

    run(**options)


@cli.command("explain")
@click.argument("bundle", type=click.Path())
@click.argument("text")
@_vocab_option
@click.option("--entry", default="start", show_default=True, help="Where the text begins: see `toolc inspect`.")
@click.option("--tokens", is_flag=True, help="TEXT is a list of token ids.")
@_json_option
@guarded
def explain_command(**options: Any) -> None:
    """Say why TEXT cannot be the beginning of a text of BUNDLE: which value it is in, and which keywords rule that.

    TEXT is the text itself, - for standard input, or @FILE; a last newline of either is left out.
    """
    from .commands.explain import run

    run(**options)


@cli.command("test")
@click.argument("spec", type=click.Path())
@click.option("--tokenizer", metavar="T", help="Tokenizer file, model folder or Hugging Face id.  [default: builtin]")
@click.option("--protocol", metavar="P", help="How calls are written: see `toolc protocols`, or a .lark file.")
@click.option("--response", type=click.Path(), metavar="FILE", help="JSON Schema of a structured response.")
@click.option(
    "--validator",
    metavar="M:F",
    help="A function that is given each call, or a class, as a model, of its arguments.  [default: jsonschema]",
)
@click.option("--examples", type=click.IntRange(1), default=100, show_default=True, help="Decodes of each tool.")
@click.option("--budget", type=click.IntRange(1), help="Most tokens of a text.  [default: 40 more than needed]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random decodes.")
@_json_option
@guarded
def test_command(**options: Any) -> None:
    """Decode at random under SPEC, validate what comes out, and show the smallest failure."""
    from .commands.test import run

    run(**options)


@cli.command("protocols")
@click.argument("model", required=False, type=click.Path())
@_json_option
@guarded
def protocols_command(**options: Any) -> None:
    """List the protocols: the ways in which models write calls of tools.

    With MODEL, a folder, GGUF file or Hugging Face id: rank them by what they read back of the calls that the model's
    chat template writes.
    """
    from .commands.protocols import run

    run(**options)


@cli.command("speculate")
@click.option("--trace", type=click.Path(dir_okay=False), help="A trace of an agent, in the place of G, T and N.")
@click.option("--main-s", type=float, help="G: seconds of the model per turn.")
@click.option("--guess-s", type=float, required=True, help="g: seconds until the small model's call is there.")
@click.option("--tool-s", type=float, help="T: seconds of the tool.")
@click.option("--hit-rate", type=float, required=True, help="α: share of turns whose call is guessed.")
@click.option("--turns", type=int, default=1, show_default=True, help="N, K: turns of a run.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="λ: guesses in parallel.")
@click.option("--main-price", type=float, default=0.0, help="Price of a turn of the model.")
@click.option("--guess-price", type=float, default=0.0, help="Price of a guess.")
@click.option("--tool-price", type=float, default=0.0, help="Price of a call of the tool.")
@click.option("--overhead-s", type=float, default=0.0, help="o: seconds to come back into the engine.")
@click.option("--prefill-rate", type=float, help="φ: tokens per second; with it the engine side is worked out too.")
@click.option("--decode-rate", type=float, help="δ: tokens per second of one sequence.")
@click.option("--prompt", type=int, help="X: tokens of the prompt.")
@click.option("--reasoning", type=int, help="R: tokens before a call.")
@click.option("--call", type=int, help="t: tokens of a call.")
@click.option("--output", type=int, help="Tokens of a tool's output.")
@click.option("--prefix-cache", is_flag=True, help="The engine keeps the prefixes of sequences that left.")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the curves to this SVG file.")
@_json_option
@guarded
def speculate_command(**options: Any) -> None:
    """Say what running the likely call early is worth, from measured figures; see docs/speculate.md."""
    from .commands.speculate import run

    run(**options)


@cli.command("bench")
@click.option("--tokenizer", metavar="T", help="A tokenizer.json or a folder with one.  [default: builtin]")
@click.option("--texts", type=click.IntRange(1), default=5, show_default=True, help="Texts of each schema.")
@click.option("--plot", type=click.Path(dir_okay=False), metavar="SVG", help="Draw the table to this file.")
@_json_option
@guarded
def bench_command(**options: Any) -> None:
    """Time compiles and masks on the specs that toolc brings along, beside the peers that are installed."""
    from .commands.bench import run

    run(**options)


@cli.command("demo")
@click.option("--rows", type=click.IntRange(1, 256), default=16, show_default=True, help="Sequences decoded at once.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Of the weights and of the sampling.",
)
@_json_option
@guarded
def demo_command(**options: Any) -> None:
    """Decode with a small random-weight transformer, with a bundle and without, side by side."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's: the model is so small that threads only wait
    from .commands.demo import run

    run(**options)


def main() -> None:
    """The entry point of the ``toolc`` script."""
    end_on_signals()
    # What is left at the end goes with the process: looking for cycles in it takes as long as compiling a small spec.
    atexit.register(gc.freeze)
    try:
        cli(prog_name="toolc")
    except OSError as error:  # of --help, which no command writes
        end_without_room(error)
        raise
    except SystemExit:  # of click, which takes a Ctrl-C outside of a command for an error
        end_as_asked()
        raise
    finally:
        end_at_once()


if __name__ == "__main__":
    main()
