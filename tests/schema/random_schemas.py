"""Hypothesis strategies: schemas with every keyword, and values that have a chance to be on either side of them.

Leaves out   references outside the document.
Invariants   values keep the declared restrictions out of the way where that is possible: no 1.0, at most 20 digits.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

KEYS = ["a", "b", "c", 'q"']
TEXTS = ["", "a", "b", "ab", "ba", "aab", "a b", '"', "\n", "é", "a\n", "12", "a1", "\\", "\u0001", "😀"]
FORMATTED = ["2024-02-29", "2023-02-29", "23:59:60Z", "10:20:30+01:00", "2024-02-29T10:20:30Z", "P1Y", "PT", "a@b.c",
             "a@", "a.b", "-a", "1.2.3.4", "1.2.3.256", "::1", ":::", "x:y", "//a", "/b", "{a}", "{", "#", "0#", "01",
             "~2",
             "123e4567-e89b-12d3-a456-426614174000", "http://é.org/"]  # fmt: skip
FORMATS = ["date", "time", "date-time", "duration", "email", "idn-email", "ipv4", "ipv6", "uri", "uri-reference", "iri",
           "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "hostname",
           "color"]  # fmt: skip
STRINGS = st.sampled_from([*TEXTS, *TEXTS, *FORMATTED])
PATTERNS = ["a", "^a", "b$", "^a*$", "^[^a]", "^a|b$", "^(?!a)", "\\d", "^.$", "^(a|b){2}$", "^$", "\\ba", '[\\n"]',
            "[aé]$",            "^(?=.*b)", "\\w\\s", "^\\W*$", "(?<=a)b"]  # fmt: skip
NUMBERS = st.sampled_from([-11, -2, -1, 0, 1, 2, 3, 5, 9, 10, 11, 100, 0.5, 1.5, -0.25, 2.25, 10.125, 0.1, 0.3, 1e-7])
FINE = st.sampled_from(["0.1", "0.30000000000000000001", "9999999999999999999", "-0.5", "10.1249999",
                        "9007199254740993",                        "0.0000001", "2.9999999999999999999"])  # fmt: skip
MULTIPLES = [1, 2, 3, 0.5, 0.25, 1.5, 7, 0.1, 12, 0.3]

values = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, FINE.map(Decimal), STRINGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*KEYS, "d"]), inner, max_size=3)
    ),
    max_leaves=5,
)
constants = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, STRINGS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=2)),
    max_leaves=4,
)


def _some(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def _applied(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, min_size=1, max_size=3)
    keys = st.sampled_from(KEYS)
    names = st.lists(keys, max_size=2, unique=True)
    return st.one_of(
        _some(
            type=st.just("object"),
            properties=st.dictionaries(keys, inner, max_size=3),
            required=names,
            additionalProperties=inner,
            patternProperties=st.dictionaries(st.sampled_from(PATTERNS[:4]), inner, max_size=2),
            minProperties=st.integers(0, 2),
            maxProperties=st.integers(0, 3),
            propertyNames=inner,
            dependentRequired=st.dictionaries(keys, names, max_size=1),
            dependentSchemas=st.dictionaries(keys, inner, max_size=1),
            dependencies=st.dictionaries(keys, st.one_of(names, inner), max_size=1),
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
            items=st.lists(constants, min_size=1, max_size=3).map(lambda options: {"enum": options}),
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
    st.fixed_dictionaries({"format": st.sampled_from(FORMATS)}, optional={"type": st.just("string")}),
    _some(
        type=st.sampled_from(["integer", "number"]),
        minimum=NUMBERS,
        maximum=NUMBERS,
        exclusiveMinimum=NUMBERS,
        exclusiveMaximum=NUMBERS,
        multipleOf=st.sampled_from(MULTIPLES),
    ),
    st.lists(constants, min_size=1, max_size=4).map(lambda options: {"enum": options}),
    constants.map(lambda value: {"const": value}),
)
schemas = st.recursive(leaves, _applied, max_leaves=6)
DRAFTS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}


def older(schema: Any, draft: int) -> Any:
    """The same schema in the words of an older draft: lists of items, boolean bounds, ``definitions``."""
    if isinstance(schema, list):
        return [older(one, draft) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: value if key in ("enum", "const") else older(value, draft) for key, value in schema.items()}
    if draft < 2020 and isinstance(out.get("prefixItems"), list):
        rest = out.pop("items", None)
        out["items"] = out.pop("prefixItems")
        if rest is not None:
            out["additionalItems"] = rest
    if draft == 4:
        for side in ("Minimum", "Maximum"):
            bound = out.pop(f"exclusive{side}", None)
            if bound is not None and not isinstance(bound, (dict, bool)):
                out[side.lower()], out[f"exclusive{side}"] = bound, True
        if isinstance(out.get("const"), (str, int, float)):
            out["enum"] = [out.pop("const")]
    return out
