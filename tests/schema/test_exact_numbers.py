"""Numbers of schemas as they are written: against a judge that reads texts as decimals."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.commands.check import check
from toolc.compiler.errors import SchemaError, SpecError, ToolcError, UnsatisfiableError, UnsupportedError
from toolc.compiler.key import source_key
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.defaults import defaults_of
from toolc.compiler.specs import exact_numbers, read_spec
from toolc.compiler.specs.exact_numbers import read_number, write_json
from toolc.compiler.specs.source import parse
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.keys import Scope
from toolc.runtime.speculate.rules import Rules

from .judge import Judge, schema_of
from .recogniser import Compiled

EXAMPLES = 20_000 if os.environ.get("TOOLC_HYPOTHESIS_PROFILE") == "fuzz" else 150

ROWS: list[tuple[str, list[str], list[str]]] = [
    ('{"const": 18014398509481985.0}', ["18014398509481985", "18014398509481985.0"], ["18014398509481984"]),
    ('{"const": 0.1000000000000000055511151231257827}', ["0.1000000000000000055511151231257827"], ["0.1"]),
    ('{"const": 2.5e-400}', ["0." + "0" * 399 + "25"], ["0", "0.0", "-0"]),
    ('{"const": 1e400}', ["1" + "0" * 400], ["1" + "0" * 399, "1" + "0" * 308]),
    ('{"const": 1.50}', ["1.5", "1.500"], ["1.51"]),
    ('{"enum": [1, 1.0, 1e401]}', ["1", "1" + "0" * 401], ["1" + "0" * 400]),
    ('{"enum": [{"a": [0.30000000000000000001]}]}', ['{"a": [0.30000000000000000001]}'], ['{"a": [0.3]}']),
    ('{"minimum": 36028797018963969.0}', ["36028797018963969"], ["36028797018963968"]),
    ('{"maximum": 0.69999999999999999999}', ["0.6", "0.69999999999999999999"], ["0.7"]),
    ('{"exclusiveMaximum": 0.70000000000000000001}', ["0.7"], ["0.70000000000000000001", "0.8"]),
    ('{"minimum": 1e-400, "maximum": 1}', ["1", "0.1"], ["0", "-0", "0.0"]),
    ('{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0.20000000000000000001, '
     '"exclusiveMinimum": true, "maximum": 9}', ["0.3"], ["0.20000000000000000001", "0.2"]),
    ('{"multipleOf": 0.70000000000000000001, "minimum": 0, "maximum": 2}',
     ["0", "0.70000000000000000001", "1.40000000000000000002"], ["0.7", "1.4", "2.1"]),
    ('{"type": "integer", "multipleOf": 3000000000000000001.0, "minimum": 1, "maximum": 9000000000000000000}',
     ["3000000000000000001", "6000000000000000002"], ["3000000000000000000", "0"]),
    ('{"multipleOf": 1e-30, "minimum": 0, "maximum": 2e-30}', ["0", "0." + "0" * 29 + "1"], ["0.1"]),
    ('{"multipleOf": 0.1234567, "minimum": -1, "exclusiveMaximum": 0.1234567, "not": {"type": "integer"}}',
     ["-0.1234567", "-0.2469134"], ["0", "0.0", "0.1234567"]),
    ('{"type": "string", "minLength": 3.0, "maxLength": 0.4e1}', ['"abc"', '"abcd"'], ['"ab"', '"abcde"']),
    ('{"type": "array", "items": {"type": "null"}, "minItems": 1.0, "maxItems": 20e-1}',
     ["[null]", "[null, null]"], ["[]", "[null, null, null]"]),
    ('{"type": "array", "items": {"enum": [1, 0.30000000000000000001, 0.3]}, "maxItems": 2, "uniqueItems": true}',
     ["[0.3, 0.30000000000000000001]"], ["[0.3, 0.3]", "[1, 1]"]),
    ('{"not": {"const": 0.30000000000000000001}, "type": "number", "minimum": 0, "maximum": 1}', ["0.3"],
     ["0.30000000000000000001"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "valid", "invalid"), ROWS, ids=[row[0][:60] for row in ROWS])
@pytest.mark.parametrize("form", ["json", "yaml", "decimals"])
def test_numbers_are_read_as_written(text: str, valid: list[str], invalid: list[str], form: str) -> None:
    document = json.loads(text, parse_float=Decimal) if form == "decimals" else parse(text.encode(), f"a.{form}")
    ours, judge = Compiled(schema_to_lark(document)[0]), Judge(schema_of(text))
    for one in valid:
        assert judge.accepts(one) and ours.accepts(one), one
    for one in invalid:
        assert not judge.accepts(one) and not ours.accepts(one), one


def test_the_cases_that_were_collected(shared: Path) -> None:
    lines = (shared / "cases" / "safety" / "numbers.jsonl").read_text(encoding="utf-8").splitlines()
    refused = []
    for case in map(json.loads, lines):
        for name in ("a.json", "a.yaml"):
            try:
                ours = Compiled(schema_to_lark(parse(case["schema_text"].encode(), name))[0])
            except UnsupportedError as error:  # a multiple of 20 digits has no automaton
                assert "multipleOf has too many residues" in str(error)
                refused.append(case["schema_text"])
                continue
            assert all(map(ours.accepts, case["valid"])) and not any(map(ours.accepts, case["invalid"])), case
    assert len(refused) <= 2


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        ('{"const": 1e999999999}', "a:1:11", "found 1e999999999, expected at most 4,000 digits"),
        ('{"maximum": 1e-999999999}', "a:1:13", "too long"),
        ('{"items": {"enum": [-1.5E+99999999999999999999]}}', "a:1:21", "too long"),
        ('{"minLength": 3.00000000000000000001}', "#/minLength", "found 3.00000000000000000001 (number)"),
        ('{"minLength": 1e400}', "#/minLength", "found 1e+400 (number)"),
        ('{"type": 0.30000000000000000001}', "#/type", "found 0.30000000000000000001 (number)"),
        ('{"multipleOf": -1e-400}', "#/multipleOf", "found -1e-400 (number)"),
    ],
)
def test_what_is_too_long_is_refused_soon_with_its_place(schema: str, place: str, words: str) -> None:
    begin = time.process_time()
    with pytest.raises(ToolcError) as error:
        schema_to_lark(parse(schema.encode(), "a"))
    assert (error.value.place or "").endswith(place) and words in str(error.value)
    assert time.process_time() - begin < 1


def test_values_of_python() -> None:
    longest = Decimal("1e-3999")
    for value in (Decimal("Infinity"), Decimal("NaN"), Decimal("sNaN"), longest / 10, Decimal("1e4000")):
        with pytest.raises(SpecError) as error:
            read_spec({"items": {"const": value}}, "x")
        assert error.value.place == "x#/items/const"
        with pytest.raises(SchemaError):
            schema_to_lark({"const": value})
    assert read_spec({"const": longest}).schema == {"const": longest}
    for value in (Decimal("0.5"), np.float64(0.5), 0.5):
        ours = Compiled(schema_to_lark({"const": value})[0])
        assert ours.accepts("0.5") and ours.accepts("0.50") and not ours.accepts("0.51")
    assert Compiled(schema_to_lark({"const": Decimal("1")})[0]).accepts("1.0")
    assert not Compiled(schema_to_lark({"const": 1})[0]).accepts("1.0")


@pytest.mark.parametrize("text", ["0.1", "-0.0", "1e22", "1.50", "0e9999", "-0.00e99999999999999999999", "5e-324"])
def test_what_a_float_stands_for_is_a_float(text: str) -> None:
    assert type(read_number(text)) is float


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_numbers_are_written_as_they_are_read(text: str) -> None:
    number = read_number(text if any(one in text for one in ".eE") else text + ".0")
    assert Decimal(write_json(number)) == Decimal(text)
    again = read_number(write_json(number))
    assert again == number and type(again) is type(number)


def test_json_with_decimals() -> None:
    value = {"a": [Decimal("1e400"), {"é": Decimal("0.30")}], "b": None, "c": 0.5, "d": Decimal(1)}
    assert write_json(value) == '{"a": [1e+400, {"é": 0.30}], "b": null, "c": 0.5, "d": 1.0}'
    assert write_json(value, ascii_only=True).startswith('{"a": [1e+400, {"\\u00e9": 0.30}]')
    nested: Any = Decimal("1e400")
    for _ in range(499):
        nested = [nested]
    assert write_json(nested) == "[" * 499 + "1e+400" + "]" * 499
    with pytest.raises(TypeError):
        write_json([Decimal(1), object()])


def test_each_part_of_json_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what lies in n lists it was tried n times."""
    asked = []

    def dumps(value: Any, **options: Any) -> str:
        asked.append(len(str(value)))
        return json.dumps(value, **options)

    monkeypatch.setattr(exact_numbers, "json", SimpleNamespace(dumps=dumps))
    value: Any = Decimal("1e400")
    for n in range(200):
        value = [value, "a long text"] if n % 2 else {"k": value, "l": []}
    assert write_json(value).count("a long text") == 100
    assert sum(asked) < 3 * len(str(value))


def test_keys_tell_digits_apart() -> None:
    texts = ["0.3", "0.30000000000000000001", "0.30000000000000000002", "1e400", "1e401", "3e-400", "0.0", "0"]
    for around in ('{"const": %s}', '{"items": {"maximum": %s}}'):
        specs = [read_spec(around % text) for text in texts]
        assert len({spec.digest for spec in specs}) == len(texts)
        spec = read_spec('[{"name": "f", "input_schema": {"type": "object"}}]')
        keys = {source_key(spec, options=Options(response=one.schema)) for one in specs}
        assert len(keys) == len(texts)
    assert read_spec({"const": Decimal("0.5")}).digest == read_spec('{"const": 0.50}').digest
    assert read_spec({"const": Decimal("10e399")}).digest == read_spec('{"const": 1e400}').digest
    marked = Options(response={"const": {"number": "1e400"}}), Options(response={"const": Decimal("1e400")})
    assert source_key(spec, options=marked[0]) != source_key(spec, options=marked[1])


def test_nothing_kept_of_one_schema_stands_for_another() -> None:
    """Parts, pieces and terminals are found by what they say; two tools differ in one digit here."""

    def bundle(*bounds: str) -> Any:
        tool = (
            '{"name": "%s", "input_schema": {"type": "object", "required": ["x"], "additionalProperties": false, '
            '"properties": {"x": {"type": "number", "minimum": 0, "maximum": %s}}}}'
        )
        text = ", ".join(tool % (name, bound) for name, bound in zip("fg", bounds, strict=False))
        return compile_tools(f"[{text}]", options=Options(protocol="json")).bundle

    # the same compile, and one after another
    for tools in (("0.29999999999999999999", "0.3"), ("0.3", "0.29999999999999999999")):
        made = bundle(*tools)
        for name, bound in zip("fg", tools, strict=True):
            for x in ("0.3", "0.2"):
                text = f'{{"name": "{name}", "arguments": {{"x": {x}}}}}'
                assert accepts(made, text) == (Decimal(x) <= Decimal(bound)), (tools, text)
    exact = [compile_schema(schema_of(f'{{"const": {one}}}')).bundle for one in ("1e23", "1.00000000000000000001e23")]
    assert accepts(exact[0], "1" + "0" * 23) and not accepts(exact[1], "1" + "0" * 23)


def accepts(bundle: Any, text: str) -> bool:
    """Whether a bundle allows a whole text."""
    return bool(check(bundle, text.encode())["accepted"])


def test_defaults_are_given_on_as_written() -> None:
    text = (
        '[{"name": "f", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object", "properties": '
        '{"x": {"type": "number", "default": 1e-400}, "y": {"type": "number", "maximum": 0.29999999999999999999, '
        '"default": 0.3}, "z": {"type": "number", "default": 0.5}}}}]'
    )
    (found,) = defaults_of(read_spec(text).tools, Budget())
    assert found == '{"properties": {"x": {"default": 1e-400}, "z": {"default": 0.5}}}'
    rules = Rules.from_bundle(compile_tools(text).bundle)
    assert rules.key(Scope(), "f", {"x": 0.5}) == rules.key(Scope(), "f", {"x": 0.5, "z": 0.5})
    with pytest.raises(SpeculateError, match="no canonical form"):  # x is 1e-400, which is no double
        rules.key(Scope(), "f", {})


# -- random schemas


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@st.composite
def written(draw: st.DrawFn) -> str:
    """A number with more digits than a float has, or an exponent beyond floats, or a plain one."""
    sign = draw(st.sampled_from(["", "", "-"]))
    near = draw(
        st.sampled_from(["0.1", "0.3", "0.7", "1", "2.5", "9007199254740992", "123456789012345678", "0.29999999"])
    )
    how = draw(st.integers(0, 6))
    if how == 0:
        return sign + near
    if how == 1:  # one digit far behind
        point = "" if "." in near else "."
        return f"{sign}{near}{point}{'0' * draw(st.integers(0, 18))}{draw(st.integers(1, 9))}"
    if how == 2:
        return f"{sign}{draw(st.integers(2**53, 2**70))}.{draw(st.sampled_from(['0', '5', '00', '25']))}"
    if how == 3:
        return f"{sign}{draw(st.integers(0, 3))}.{draw(st.text('0123456789', min_size=17, max_size=24))}"
    if how == 4:
        return f"{sign}{draw(st.integers(1, 99))}e{draw(st.sampled_from([-400, -330, -30, -2, 2, 17, 24, 310, 400]))}"
    if how == 5:
        return (
            f"{sign}{draw(st.sampled_from(['9', '99', '0.9', '0.2', '1.0']))}{'9' * draw(st.integers(15, 24))}".replace(
                "1.09", "1.9"
            )
        )
    return f"{sign}{draw(st.integers(0, 10**19))}"


@st.composite
def numeric(draw: st.DrawFn) -> str:
    """The text of a schema of numbers."""
    bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    members = [
        f'"{name}": {draw(written())}' for name in draw(st.lists(st.sampled_from(bounds), max_size=2, unique=True))
    ]
    if draw(st.integers(0, 4)) == 0:
        members = [f'"enum": [{", ".join(draw(st.lists(written(), min_size=1, max_size=3)))}]']
    elif draw(st.integers(0, 4)) == 0:
        members.append(f'"const": {draw(written())}')
    elif draw(st.integers(0, 4)) == 0:
        of = draw(written()).lstrip("-")
        if Decimal(of):
            size = Decimal(of) * draw(st.integers(1, 5))
            members = [
                f'"multipleOf": {of}',
                f'"minimum": {draw(st.sampled_from(["0", "-" + of]))}',
                f'"maximum": {size}',
            ]
    if draw(st.integers(0, 3)) == 0:
        members.append(f'"type": "{draw(st.sampled_from(["integer", "number"]))}"')
    return "{" + ", ".join(members) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    one, how = draw(numeric()), draw(st.integers(0, 5))
    if how == 0:
        return f'{{"type": "number", "not": {one}}}'
    if how == 1:
        return f'{{"type": "number", "anyOf": [{one}, {draw(numeric())}]}}'
    if how == 2:
        return f'{{"type": "number", "allOf": [{one}, {draw(numeric())}]}}'
    return f'{{"type": "number", "allOf": [{one}]}}'


def numbers_in(value: Any) -> list[Decimal]:
    if isinstance(value, dict):
        return [found for one in value.values() for found in numbers_in(one)]
    if isinstance(value, list):
        return [found for one in value for found in numbers_in(one)]
    return [Decimal(value)] if isinstance(value, (int, Decimal)) else []


def texts_around(bounds: list[Decimal]) -> list[str]:
    """Plain spellings of the bounds, of what a float makes of them, and of what lies one digit beside."""
    found: dict[str, None] = {"0": None, "-0": None, "0.5": None, "1": None}
    for bound in bounds:
        near = [bound]
        rounded = float(bound)
        if abs(rounded) < 1e300:
            near += [Decimal(repr(rounded)), Decimal(repr(float(np.nextafter(rounded, 9e300))))]
        sign, digits, exponent = bound.as_tuple()
        size = int("".join(map(str, digits)))
        near += [Decimal((sign, tuple(map(int, str(max(0, size + step)))), exponent)) for step in (-1, 1)]
        near += [
            Decimal((sign, tuple(map(int, str(size * 10 + step if size * 10 + step > 0 else 0))), exponent - 1))
            for step in (-1, 1)
        ]
        near += [bound.copy_negate(), bound.to_integral_value()]
        for one in near:
            text = _plain(one)
            found[text] = None
            found[text + ("0" if "." in text else ".0")] = None
    return list(found)


OUTCOMES: Counter[str] = Counter()


def compare(text: str) -> None:
    """Hold what is compiled against the judge, on the texts around all numbers of a schema."""
    schema = schema_of(text)
    bounds = numbers_in(schema)
    judge = Judge(schema)
    try:
        ours = Compiled(schema_to_lark(parse(text.encode(), "a"))[0])
    except UnsatisfiableError:
        ours = None
    except UnsupportedError as error:
        assert "multipleOf" in str(error), text
        OUTCOMES["refused"] += 1
        return
    OUTCOMES["compiled" if ours else "unsatisfiable"] += 1
    for one in texts_around(bounds):
        valid, accepted = judge.accepts(one), ours is not None and ours.accepts(one)
        OUTCOMES["valid" if valid else "invalid"] += 1
        assert valid or not accepted, (text, one, judge.why_not(one))
        whole, _, fraction = one.lstrip("-").partition(".")
        if len(whole) <= 20 and len(fraction) <= 20 and one in (_plain(Decimal(one)), "-0"):  # no restriction met
            assert accepted or not valid, (text, one)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents())
def test_random_schemas_against_decimals(text: str) -> None:
    compare(text)
