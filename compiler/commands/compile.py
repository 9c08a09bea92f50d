"""``toolc compile``: a spec or grammar to a bundle file.

Leaves out   the pipeline: see ../pipeline.py.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolc.runtime.format.vocab import find_vocab, vocab_cache_dir

from ..compiled import Compiled
from ..errors import ReportError, SetupError
from ..options import BUILTIN, Options
from ..pipeline import compile_grammar, compile_spec
from ..source import beside, grammar_name
from ..specs.project import NAMES as PROJECT_NAMES
from ..specs.project import Project, find_project, read_project
from .outputs import output_file
from .source import budget_of, read_source, schema_options
from .terminal import (
    SKIPPED,
    Progress,
    console,
    counted,
    facts,
    figures,
    left_out,
    listed,
    many_keys,
    note,
    note_missing_ends,
    note_missing_marks,
    print_json,
    refuse_usage,
    restrictions,
    size,
)
from .warmup import warm


def run(given: set[str], **options: Any) -> None:
    """Compile and write; see cli.py for the options. ``given`` are those that stand on the command line."""
    specs, tokenizers = options.pop("specs"), options.pop("tokenizers")
    many = {name: options.pop(name) for name in MANY}
    if many["store"] is not None:
        _run_many(list(specs), tokenizers, given, {**options, **many})
        return
    if len(specs) > 1 or len(tokenizers) > 1 or (specs and os.path.isdir(specs[0])):
        refuse_usage("several specs or tokenizers, or a folder, are compiled into a store; name it with --store")
    if extra := [f"--{name.replace('_', '-')}" for name in MANY if name in given]:
        refuse_usage(f"{extra[0]} is for compiling into a store; name it with --store")
    spec: Any = specs[0] if specs else None
    options["tokenizer"] = tokenizers[0] if tokenizers else None
    given = given | ({"tokenizer"} if tokenizers else set())
    project = _project(spec)
    if project is None:
        _run(spec, **options)
        return
    said = {
        name: getattr(project, name) for name in ("tokenizer", "protocol", "response", "output", "schemas")
    } | project.options
    said["but"] = said.pop("except", None)
    options |= {key: value for key, value in said.items() if value is not None and key not in given}
    options["eos"] = options["eos"] or project.eos
    if options["logits_width"] is None:
        options["logits_width"] = project.logits_width
    _run(project, **options)


WARNINGS = 20
"""Warnings that are shown."""

MANY = ("store", "store_bytes", "sign", "ray", "report")
"""Options that only mean something with a store."""


def _run_many(specs: list[str], tokenizers: tuple[str, ...], given: set[str], options: dict[str, Any]) -> None:
    from .compile_many import run as run_many

    if options["strict_report"]:
        refuse_usage("--strict-report is for one spec; in a store what was warned of stands beside what was not")
    if not specs or "-" in specs:
        refuse_usage("name the specs, or folders of specs, that are compiled into the store")
    if extra := {"output", "standalone"} & given:
        refuse_usage(f"--{min(extra)} and --store exclude each other")
    if options["syntax"] is not None:
        refuse_usage("in a store the ending of a file says what a grammar is written in; leave out --syntax")
    if options["ray"] is not None and options["sign"] is not None:
        refuse_usage("keys are not sent to a cluster; sign what it made with toolc pull and toolc push --sign")
    rest = {name: options[name] for name in (*MANY, "max_spec_bytes", "as_json", "quiet")}
    stated = options["eos"], options["logits_width"]
    run_many(specs, tokenizers, stated, _options(options), **rest)


def _options(more: dict[str, Any]) -> Options:
    """The options of a compile from those of the command line."""
    return replace(
        schema_options(more),
        soft_depth=more["soft_depth"],
        max_depth=more["max_depth"],
        standalone=more["standalone"],
        budget=budget_of(more),
        jobs=more["jobs"],
    )


def _project(spec: str | None) -> Project | None:
    """The project file that SPEC is, or that of this folder where SPEC is left out."""
    if spec is not None:
        path = Path(spec)
        return read_project(path) if path.name in PROJECT_NAMES else None
    found = find_project(Path.cwd())
    if found is None:
        refuse_usage(f"no SPEC is given, and there is no {PROJECT_NAMES[0]} here that names one")
    return read_project(found)


def _run(
    spec: str | Project,
    output: str | None,
    tokenizer: str | None,
    eos: tuple[str, ...],
    logits_width: int | None,
    as_json: bool,
    quiet: bool = False,
    **more: Any,
) -> None:
    inputs = [*([spec] if isinstance(spec, str) else spec.specs), tokenizer, more["response"]]
    if output is not None:
        output_file(output, inputs)
    options = _options(more)
    with Progress(quiet=as_json or quiet) as progress:
        progress("spec")
        source, stem = read_source(spec, more["max_spec_bytes"], options, more["syntax"])
        path = Path(f"{stem}.toolc" if output is None else output)
        target = output_file(path, inputs)
        warm(progress, options.jobs)
        how: dict[str, Any] = {"eos": eos, "logits_width": logits_width, "options": options, "progress": progress}
        named = BUILTIN if tokenizer is None else tokenizer
        if isinstance(source, str):
            compiled = compile_grammar(
                source, named, **how, name=grammar_name(str(spec)), import_paths=beside(str(spec))
            )
        else:
            compiled = compile_spec(source, named, **how)
        warnings = _warnings(compiled.report)
        if more["strict_report"] and warnings:
            rest = f", and {len(warnings) - 1} more" if len(warnings) > 1 else ""
            place, words = warnings[0]
            hint = "mend the spec, or compile without --strict-report, which lists them all"
            raise ReportError(f"{words}{rest}", place=place, hint=hint)
        progress("writing")
        try:
            compiled.write(target)
        except OSError as error:
            raise SetupError(f"cannot write the bundle: {error.strerror}", place=str(path)) from None
    for place, words in warnings[:WARNINGS]:
        note(f"toolc: warning: {place}: {words}")
    if len(warnings) > WARNINGS:
        note(f"toolc: warning: and {len(warnings) - WARNINGS} more; --json lists all")
    for one in compiled.report["repaired"]:
        note(f"toolc: repaired: {one['place']}: {one['how']}")
    for one in compiled.report["skipped"]:
        note(f"toolc: left out: {left_out(one)}")
    if tokenizer is None:
        count = compiled.report["tokenizer"]["size"]
        note(f"toolc: no --tokenizer given; compiled for the built-in one of {count:,} tokens")
    if compiled.report["chosen"] is not None:
        note(f"toolc: protocol {compiled.report['protocol']}, {compiled.report['chosen']}")
    note_missing_ends(compiled.report["missing_ends"], compiled.report["protocol"])
    if named != BUILTIN:  # which is no model's
        note_missing_marks(compiled.report["missing_marks"], compiled.report["protocol"])
    if not options.standalone and find_vocab(compiled.bundle.vocab.digest, beside=path) is None:
        note(
            f"toolc: the vocab file could not be kept in {vocab_cache_dir()}; with --standalone it is inside the bundle"
        )
    file_bytes = os.path.getsize(path)
    if as_json:
        about = {"digest": compiled.bundle.digest, **compiled.report}
        print_json({"ok": True, "output": str(path), "file_bytes": file_bytes, **about})
    else:
        _print(compiled, path, file_bytes)
    if compiled.report["skipped"]:
        sys.exit(SKIPPED)


def _warnings(report: dict[str, Any]) -> list[tuple[str, str]]:
    """(place, words) of what the spec says, and no text has."""
    found = [(one["pointer"], f"never written: {one['why']}") for one in report["unwritable"]]
    found += [(place, "no field of a request that toolc knows; it constrains nothing") for place in report["unread"]]
    found += [
        (
            one["pointer"],
            f"{one['keyword']!r} is of a later draft than this schema, and constrains nothing; name that draft in "
            "$schema, or compile with --repair",
        )
        for one in report["later"]
    ]
    return found + [
        (one["pointer"], f"{one['keyword']!r} is no keyword, and constrains nothing; did you mean {one['meant']!r}?")
        for one in report["misspelt"]
    ]


def _print(compiled: Compiled, path: Path, file_bytes: int) -> None:
    report = compiled.report
    rows = [("bundle", f"{path} ({size(file_bytes)})")]
    if report["tools"]:
        rows.append((counted(len(report["tools"]), "tool"), listed(report["tools"])))
    if report["protocol"]:
        rows.append(("protocol", f"{report['protocol']}, entries {listed(report['entries'])}"))
    if report["begins"]:
        rows.append(("begins at", report["begins"]))
    rows.append(("tokenizer", f"{report['tokenizer']['source']} ({report['tokenizer']['size']:,} tokens)"))
    rows.append(("end of turn", listed(report["ends"])))
    rows.append(("figures", figures(report["counts"])))
    if report["parts"] is not None:
        rows.append(("parts", f"{report['parts']['all']}, {report['parts']['reused']} of them compiled before"))
    seconds = report["seconds"]
    parts = ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items() if value >= 0.005)
    rows.append(("seconds", f"{sum(seconds.values()):.2f}" + (f" ({parts})" if parts else "")))
    rows.append(("restrictions", restrictions(report["restrictions"])))
    if report["many_keys"]:
        rows.append(("key order", many_keys(report["many_keys"])))
    if report["dropped"]:
        rows.append(("dropped", listed(report["dropped"], 20)))
    console().print(facts(rows))
