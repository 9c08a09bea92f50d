"""A project file, toolc.yaml: which spec, for which tokenizer, in which protocol; then `toolc compile` alone is enough.

    spec: tools.json                     # or a list of files, whose tools are joined
    tokenizer: Qwen/Qwen3-8B             # as --tokenizer; a path starts from this file's folder
    protocol: hermes                     # as --protocol
    response: answer.schema.json         # as --response
    output: tools.toolc                  # as -o
    schemas: models                      # as --schemas
    eos: ["<|im_end|>"]                  # as --eos
    logits_width: 151936                 # as --logits-width
    options: {whitespace: 8, digits: 20, soft_depth: 64, lenient: false, standalone: false, named: true,
              strict: true, closed: false, key_order: declared}

Leaves out   compiling: the command line and ``compile_project`` use what is read here.
Invariants   paths that exist beside the project file are taken from there; nothing else is known to the file.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..options import LISTS, check_option
from ..paths import path_text
from .external import Loader
from .model import Hosted, Repair, Spec, ToolSpec, digest_of, escape, make_spec, quote, want
from .read import beside, read_spec
from .selection import Selection
from .source import MAX_BYTES, load_document

NAMES = ("toolc.yaml", "toolc.yml", "toolc.json")
_TEXTS = ("tokenizer", "protocol", "response", "output", "schemas")
_OPTIONS = (
    "whitespace",
    "digits",
    "soft_depth",
    "max_depth",
    "lenient",
    "skip",
    "repair",
    "subtypes",
    "canonical",
    "formats",
    "relax",
    "only",
    "except",
    "key_order",
    "standalone",
    "named",
    "strict",
    "closed",
)


@dataclass(frozen=True)
class Project:
    """What a project file says.

    Attributes:
        specs: the spec files.
        tokenizer: as ``compile_tools`` takes it, or None; likewise protocol, output and eos; response is a file, and
            schemas a folder.
        logits_width: how many logits the model has, or None.
        options: fields of ``Options``.
        name: the file's name.
    """

    specs: tuple[Path, ...]
    tokenizer: str | None = None
    protocol: str | None = None
    response: str | None = None
    output: str | None = None
    schemas: str | None = None
    eos: tuple[str, ...] = ()
    logits_width: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    name: str = NAMES[0]


def find_project(folder: Path) -> Path | None:
    """The project file of a folder, if it has one."""
    return next((folder / name for name in NAMES if os.path.isfile(folder / name)), None)


def read_project(path: Path) -> Project:
    """Read a project file.

    Raises:
        SpecError: it is no project file, or names a file that is not there.
    """
    document, name = load_document(path, None, MAX_BYTES)
    want(document, dict, f"{name}#", "an object with spec")
    known = ["spec", "eos", "logits_width", "options", *_TEXTS]
    for key in document:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise SpecError(
                "a project file has no such key",
                place=f"{name}#",
                found=quote(key),
                expected=", ".join(known),
                hint=f"did you mean {near[0]}?" if near else None,
            )
    if document.get("spec", []) == []:
        raise SpecError("the project names no spec", place=f"{name}#", expected="spec: FILE")
    listed = document["spec"] if isinstance(document["spec"], list) else [document["spec"]]
    specs = []
    for i, one in enumerate(listed):
        place = f"{name}#/spec" + (f"/{i}" if isinstance(document["spec"], list) else "")
        specs.append(path.parent / want(one, str, place, "the path of a spec"))
        if not os.path.isfile(specs[-1]):
            raise SpecError("no such file", place=place, found=quote(one))
    texts = {}
    for key in _TEXTS:
        value = document.get(key)
        if value is not None:
            texts[key] = _near(want(value, str, f"{name}#/{key}", "text"), path.parent)
            if key == "response" and not os.path.isfile(texts[key]):
                raise SpecError("no such file", place=f"{name}#/response", found=quote(value))
    eos = document.get("eos", [])
    eos = [eos] if isinstance(eos, (str, int)) else want(eos, list, f"{name}#/eos", "a list of tokens")
    width = document.get("logits_width")
    if width is not None:
        want(width, int, f"{name}#/logits_width", "a whole number")
    options = want(document.get("options") or {}, dict, f"{name}#/options", "an object of options")
    for key, value in options.items():
        place = f"{name}#/options/{escape(key)}"
        if key not in _OPTIONS:
            raise SpecError("there is no such option", place=place, found=quote(key), expected=", ".join(_OPTIONS))
        check_option(key, value, place)
        if key in LISTS:
            options[key] = tuple(value) if isinstance(value, list) else (value,)
    return Project(tuple(specs), **texts, eos=tuple(map(str, eos)), logits_width=width, options=options, name=name)


def _near(value: str, folder: Path) -> str:
    """A path beside the project file where there is one, else the value itself."""
    return str(folder / value) if os.path.exists(folder / value) else value


def joined_spec(
    paths: tuple[Path, ...],
    max_bytes: int | None = MAX_BYTES,
    skip: bool = False,
    select: Selection | None = None,
    schemas: Loader | str | Path | None = None,
    repair: bool = False,
    subtypes: bool = False,
) -> Spec:
    """The spec of one file, or all tools of several; a name that stands twice is an error that names both places.

    Args:
        skip, select, schemas, repair, subtypes: as of `read_spec`.
    """
    specs = [
        read_spec(
            path, max_bytes=max_bytes, skip=skip, select=select, schemas=schemas, repair=repair, subtypes=subtypes
        )
        for path in paths
    ]
    if len(specs) == 1:
        return specs[0]
    tools: list[ToolSpec] = []
    hosted: list[Hosted] = []
    above = os.path.commonpath([path.absolute().parent for path in paths])  # places are the same on every machine
    for path, spec in zip(paths, specs, strict=True):
        if spec.kind == "schema":
            raise SpecError("a JSON Schema has no tools to join", place=f"{path.name}#", expected="specs of tools")
        file = path_text(path.absolute().relative_to(above).as_posix())
        tools += (replace(tool, file=file) for tool in spec.tools)
        hosted += (tool._replace(file=file) for tool in spec.hosted)
    name = ", ".join(spec.name for spec in specs)
    refused = [one for spec in specs for one in spec.refused] if skip else None
    numbered: list[Repair] | None = [] if repair else None
    joined = make_spec(
        "tools", name, [spec.document for spec in specs], tools, hosted=hosted, refused=refused, repairs=numbered
    )
    documents: dict[str, Any] = {}
    for spec in specs:
        for uri, document in spec.documents.items():
            if documents.setdefault(uri, document) != document:
                raise SpecError("two specs mean different files by one reference", place=f"{spec.name}#", found=uri)
    joined = beside(joined, documents)
    repairs = (*(one for spec in specs for one in spec.repairs), *(numbered or ()))
    if repairs:
        joined = replace(joined, repairs=repairs, digest=digest_of(joined.digest, list(repairs)))
    return replace(joined, digest=digest_of(joined.digest, [select.only, select.but])) if select else joined
