"""Random schemas and values: the emitted language against jsonschema, in three layouts.

The declared restrictions are kept out of the way: values have no 1.0, texts are written with minimal escapes, and a
valid object counts as accepted if some order of its keys is.
"""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler.errors import BudgetError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import schema_to_lark

from .recogniser import Recogniser

EXAMPLES = 25_000 if os.environ.get("TOOLC_HYPOTHESIS_PROFILE") == "fuzz" else 300  # `make fuzz` runs more

KEYS = ["a", "b", "c", 'q"']
STRINGS = st.sampled_from(
    ["", "a", "b", "ab", "ba", "aab", "a b", '"', "\n", "é", "a\n", "12", "a1", "\\", "\u0001", "😀"]
)
PATTERNS = ["a", "^a", "b$", "^a*$", "^[^a]", "^a|b$", "^(?!a)", "\\d", "^.$", "^(a|b){2}$", "^$", "\\ba", '[\\n"]']
NUMBERS = st.sampled_from([-11, -2, -1, 0, 1, 2, 3, 5, 9, 10, 11, 100, 0.5, 1.5, -0.25, 2.25, 10.125])

values = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, STRINGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*KEYS, "d"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def _some(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def _applied(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, min_size=1, max_size=3)
    keys = st.sampled_from(KEYS)
    return st.one_of(
        _some(
            type=st.just("object"),
            properties=st.dictionaries(keys, inner, max_size=3),
            required=st.lists(keys, max_size=2, unique=True),
            additionalProperties=inner,
            patternProperties=st.dictionaries(st.sampled_from(PATTERNS[:4]), inner, max_size=2),
            minProperties=st.integers(0, 2),
            maxProperties=st.integers(0, 3),
            propertyNames=inner,
            dependentRequired=st.dictionaries(keys, st.lists(keys, max_size=2, unique=True), max_size=1),
            dependentSchemas=st.dictionaries(keys, inner, max_size=1),
        ),
        _some(
            allOf=few,
            anyOf=few,
            oneOf=few,
            properties=st.dictionaries(keys, inner, max_size=2),
            dependentSchemas=st.dictionaries(keys, inner, max_size=1),
            unevaluatedProperties=inner,
        ),
        _some(allOf=few, anyOf=few, prefixItems=few, contains=inner, unevaluatedItems=inner, maxItems=st.just(3)),
        _some(
            type=st.just("array"),
            items=st.lists(values, min_size=1, max_size=3).map(lambda options: {"enum": options}),
            contains=inner,
            uniqueItems=st.booleans(),
            maxItems=st.integers(0, 3),
        ),
        _some(
            type=st.just("array"),
            prefixItems=few,
            items=inner,
            minItems=st.integers(0, 3),
            maxItems=st.integers(0, 3),
            contains=inner,
            minContains=st.integers(0, 2),
            maxContains=st.integers(0, 2),
        ),
        _some(anyOf=few, type=st.sampled_from(["object", "array", "string", "number"])),
        _some(allOf=few),
        _some(oneOf=few),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"])}, optional={"minItems": st.just(1)}),
    )


TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
leaves = st.one_of(
    st.booleans(),
    st.sampled_from(TYPES).map(lambda name: {"type": name}),
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(lambda names: {"type": names}),
    _some(
        type=st.just("string"),
        minLength=st.integers(0, 3),
        maxLength=st.integers(0, 3),
        pattern=st.sampled_from(PATTERNS),
    ),
    _some(
        type=st.sampled_from(["integer", "number"]),
        minimum=NUMBERS,
        maximum=NUMBERS,
        exclusiveMinimum=NUMBERS,
        exclusiveMaximum=NUMBERS,
        multipleOf=st.sampled_from([1, 2, 3, 0.5, 0.25, 1.5, 7]),
    ),
    st.lists(values, min_size=1, max_size=4).map(lambda options: {"enum": options}),
    values.map(lambda value: {"const": value}),
)
schemas = st.recursive(leaves, _applied, max_leaves=6)


def orders(value: Any) -> list[Any]:
    """The value with the keys of its objects in every order."""
    if isinstance(value, dict):
        members = [[(key, item) for item in orders(inner)] for key, inner in value.items()]
        return [dict(order) for one in itertools.product(*members) for order in itertools.permutations(one)]
    if isinstance(value, list):
        return [list(one) for one in itertools.product(*(orders(item) for item in value))]
    return [value]


def near(value: Any, other: Any) -> list[Any]:
    """The value, and some that differ from it in one place."""
    out = [value]
    if isinstance(value, dict):
        out += [{key: item for key, item in value.items() if key != gone} for gone in value]
        out += [{**value, key: new} for key in value for new in near(value[key], other)[1:] + [other]]
        out.append({**value, "z": other})
    elif isinstance(value, list):
        out += [value[:-1], [*value, other]]
        out += [[*value[:n], new, *value[n + 1 :]] for n in range(len(value)) for new in near(value[n], other)[1:]]
    return out


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, schemas, schemas, st.lists(values, min_size=6, max_size=6))
def test_language(schema: Any, x: Any, y: Any, instances: list[Any]) -> None:
    if isinstance(schema, dict):
        schema = {**schema, "$defs": {"x": x, "y": y}}
    check(schema, instances)


def check(schema: Any, instances: list[Any]) -> bool:
    """Compare on the instances, their neighbours and what the schema itself holds; False if it is refused."""
    try:
        text, _ = schema_to_lark(schema)
    except (UnsupportedError, BudgetError):
        return False
    except UnsatisfiableError:
        text = ""
    except Exception as error:
        if "refers to itself" in str(error):
            return False
        raise
    ours = Recogniser(text) if text else None
    judge = jsonschema.Draft202012Validator(schema)
    for value in [one for instance in [*instances, *_held(schema)] for one in near(instance, instances[0])[:12]]:
        try:
            valid = judge.is_valid(value)
        except RecursionError:  # jsonschema looks for evaluated keys below references without end
            continue
        layout = (
            {"indent": 1} if len(str(value)) % 3 == 0 else {"separators": (",", ":")} if len(str(value)) % 3 else {}
        )
        texts = [json.dumps(one, ensure_ascii=False, **layout) for one in orders(value)[:2000]]  # type: ignore[arg-type]
        found = ours is not None and any(ours.accepts(one) for one in texts)
        assert found == valid, (schema, value, valid, text)
    return True


def _held(schema: Any) -> list[Any]:
    """Values of enum and const inside a schema."""
    out: list[Any] = []
    if isinstance(schema, dict):
        for key, inner in schema.items():
            out += inner if key == "enum" else [inner] if key == "const" else _held(inner)
    elif isinstance(schema, list):
        for inner in schema:
            out += _held(inner)
    return out[:6]
