"""Decode at random under a spec, validate what comes out, and shrink what fails: `toolc test`, and the pytest plugin.

Leaves out   the strategies (testing.py), the command (commands/test.py), pytest's items (pytest_plugin.py).
Invariants   equal seeds give equal examples. What is validated is what `read_calls`, or JSON, reads of the text.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from toolc.runtime.calls.events import Call
from toolc.runtime.calls.typed import has_members, is_of_pydantic, read_value, typed
from toolc.runtime.format.bundle import Bundle

from .errors import SpecError
from .grammar.structural_tag import is_structural_tag
from .options import Options
from .pipeline import compile_spec
from .specs import Spec

Validator = Callable[[Any], Any]


@dataclass(frozen=True)
class Target:
    """What is decoded: the calls of one tool, or the values of a schema.

    Attributes:
        name: of the tool; empty for a schema.
        entry: where texts begin.
        schema: of its arguments, or the value; None where nothing validates it.
    """

    name: str
    entry: str
    schema: Any


@dataclass(frozen=True)
class Failure:
    """The smallest example that was not valid.

    Attributes:
        target: what it is of.
        example: the arguments of the call, or the value.
        error: what the validator said.
    """

    target: Target
    example: Any
    error: str

    def __str__(self) -> str:
        name = self.target.name or "value"
        return f"{name}: {json.dumps(self.example, ensure_ascii=False, default=str)}\n  {self.error}"


def targets_of(spec: Spec, bundle: Bundle) -> list[Target]:
    """A target for each tool, or one for a schema."""
    if is_structural_tag(spec.schema) and not spec.tools:
        raise SpecError(
            "a structural tag says no value to validate",
            place=f"{spec.name}#",
            hint="toolc.compiler.testing has strategies of its texts",
        )
    if not spec.tools:
        entry = "response" if "response" in bundle.entry else "start"
        return [Target("", entry, spec.schema)]
    found = []
    for tool in spec.tools:
        named = f"tool:{tool.name}"
        entry = named if named in bundle.entry else "required" if "required" in bundle.entry else "start"
        schema = tool.schema if tool.dialect == "json-schema" else None
        found.append(Target(tool.name, entry, schema))
    return found


def load_validator(name: str) -> Any:
    """The function or class that ``module:name`` names; modules of the current folder are found.

    Raises:
        SpecError: there is none.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise SpecError("this names no validator", found=repr(name), expected="module:function, or module:Model")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"this validator cannot be imported: {error}", found=repr(name)) from None
    finally:
        sys.path.remove("")


def check_target(
    bundle: Bundle, target: Target, validator: Any = None, examples: int = 100, budget: int | None = None, seed: int = 0
) -> Failure | None:
    """The smallest decode of a target that is not valid; None where all are.

    Args:
        validator: a function that is given the call (of a schema: the value), and raises or returns False where it is
            not valid; or a class, as a model of pydantic, that is made of the arguments. None: `jsonschema` with the
            spec's own schema.
    """
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from .testing import calls, valid_texts

    validate = _validator(validator, target)
    strategy: Any = (
        calls(bundle, target.name, entry=target.entry, budget=budget)
        if target.name
        else (valid_texts(bundle, entry=target.entry, budget=budget))
    )
    last: list[Failure] = []
    quiet = [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ]
    phases = (Phase.generate, Phase.shrink)

    @seeded(seed)
    @settings(max_examples=examples, deadline=None, database=None, phases=phases, suppress_health_check=quiet)
    @given(strategy)
    def run(drawn: Any) -> None:
        value = drawn if isinstance(drawn, Call) else _value(bundle, target, drawn)
        try:
            valid = validate(value)
        except Exception as error:  # whatever a user's validator raises says that the value is not valid
            last[:] = [Failure(target, _shown(value), f"{type(error).__name__}: {error}")]
            raise
        if valid is False:
            last[:] = [Failure(target, _shown(value), "the validator says False")]
            raise AssertionError(str(last[0]))

    try:
        run()
    except Exception:
        if not last:
            raise
        return last[0]
    return None


def _shown(value: Any) -> Any:
    return dict(value.arguments) if isinstance(value, Call) else value


def _value(bundle: Bundle, target: Target, text: str) -> Any:
    """The value of a response: its JSON, without what a protocol puts around it."""
    if bundle.meta.get("protocol"):
        from toolc.runtime.calls.whole_text import read_whole

        reader, _ = read_whole(bundle, text, target.entry)
        text = reader.text
    return json.loads(text)


def _validator(validator: Any, target: Target) -> Validator:
    if validator is None:
        return _by_schema(target.schema)
    if isinstance(validator, type) and (is_of_pydantic(validator) or has_members(validator)):
        return lambda value: (
            typed(value, validator) if isinstance(value, Call) else read_value(validator, json.dumps(value))
        )
    if not callable(validator):
        raise SpecError("this is no validator", found=type(validator).__name__, expected="a function or a class")
    return validator


def _by_schema(schema: Any) -> Validator:
    """What jsonschema says, where it is installed; else only that the text was read."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return lambda value: None
    if schema is None:
        return lambda value: None
    judge = Draft202012Validator(_exact(schema))
    return lambda value: judge.validate(_exact(_shown(value)))


def _exact(value: Any) -> Any:
    """The same with decimals for floats, as JSON means them: 0.3 is a multiple of 0.1."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, dict):
        return {key: _exact(one) for key, one in value.items()}
    return [_exact(one) for one in value] if isinstance(value, list) else value


def compiled_targets(spec: Spec, tokenizer: Any, options: Options) -> tuple[Bundle, list[Target]]:
    """The bundle of a spec, and what is decoded."""
    bundle = compile_spec(spec, tokenizer, options=options).bundle
    return bundle, targets_of(spec, bundle)
