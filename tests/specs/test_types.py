"""Types of Python as schemas and back: pydantic judges which texts are values, and which value a text is."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import ipaddress
import json
import pathlib
import random
import re
import typing
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.commands.check import check
from toolc.runtime import Bundle, DecodeError, Matcher, read_calls, read_value, run

pydantic = pytest.importorskip("pydantic")
Field = pydantic.Field


class Color(enum.Enum):
    RED = "r"
    TWO = 2
    NONE = None


class Size(enum.IntEnum):
    S = 1
    L = 2


@dataclasses.dataclass
class Place:
    name: str
    since: dt.date | None = None
    tags: frozenset[str] = frozenset()


class Row(typing.NamedTuple):
    at: dt.datetime
    count: int = 1


class Inner(pydantic.BaseModel):  # type: ignore[name-defined]
    at: dt.datetime
    price: Decimal = Decimal(1)


class Model(pydantic.BaseModel):  # type: ignore[name-defined]
    when: dt.datetime
    day: dt.date
    time: dt.time
    long: dt.timedelta
    id: uuid.UUID
    some: set[int]
    by: dict[int, Inner]
    path: pathlib.Path
    color: Color = Color.RED


Number = typing.NewType("Number", int)
ZONE = dt.timezone(dt.timedelta(hours=5, minutes=30))

# type; values that pydantic writes. All of these types are those of annotations and of models.
TYPES: dict[str, tuple[Any, list[Any]]] = {
    "datetime": (
        dt.datetime,
        [dt.datetime(2024, 2, 29, 1, 2, 3), dt.datetime(1, 1, 1, microsecond=5, tzinfo=dt.timezone.utc)]
        + [dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=ZONE)],
    ),
    "date": (dt.date, [dt.date.min, dt.date.max, dt.date(2000, 2, 29)]),
    "time": (dt.time, [dt.time(1), dt.time(23, 59, 59, 7), dt.time(1, tzinfo=dt.timezone.utc)]),
    "timedelta": (
        dt.timedelta,
        [dt.timedelta(0), dt.timedelta(days=-1, seconds=3), dt.timedelta(days=800, hours=5, microseconds=1)]
        + [dt.timedelta(seconds=-1.5), dt.timedelta(days=900_000_000, hours=23)],
    ),
    "uuid": (uuid.UUID, [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]),
    "decimal": (Decimal, [Decimal("1.50"), Decimal("-0"), Decimal("1E+5"), Decimal("1E-7")]),
    "decimal-places": (Annotated[Decimal, Field(max_digits=5, decimal_places=2)], [Decimal("123.45"), Decimal("-0.1")]),
    "decimal-digits": (Annotated[Decimal, Field(max_digits=3)], [Decimal("0.001"), Decimal("1.23"), Decimal(100)]),
    "decimal-bounds": (Annotated[Decimal, Field(ge=0, lt=10)], []),  # written as numbers
    "path": (pathlib.Path, [pathlib.Path("a/b")]),
    "bytes": (bytes, ["é".encode()]),
    "set": (set[int], [{1, 2}, set()]),
    "set-of-two": (Annotated[set[Literal[1, 2, 3]], Field(min_length=2)], [{1, 3}]),
    "frozenset": (frozenset[str], [frozenset({"a"})]),
    "deque": (collections.deque[int], [collections.deque([1, 2])]),
    "counter": (collections.Counter[str], [collections.Counter("aab")]),
    "tuple": (tuple[int, str], [(1, "x")]),
    "keys-int": (dict[int, bool], [{-1: True, 10: False}]),
    "keys-date": (dict[dt.date, int], [{dt.date(2024, 1, 1): 1}]),
    "keys-literal": (dict[Literal["a", "b"], int], [{"b": 1}]),
    "keys-pattern": (dict[Annotated[str, Field(pattern="^[a-c]+$")], int], [{"abc": 1}]),
    "ipv4": (ipaddress.IPv4Address, [ipaddress.IPv4Address("1.2.3.4")]),
    "ipv6": (ipaddress.IPv6Address, [ipaddress.IPv6Address("::1")]),
    "enum": (Color, list(Color)),
    "int-enum": (Size, list(Size)),
    "literal": (Literal["a", 1, None], ["a", 1, None]),
    "optional-date": (dt.date | None, [None, dt.date(2024, 1, 1)]),
    "date-or-text": (dt.date | str, ["2024", "x"]),
    "int-or-float": (float | int, [1, 2.5]),
    "new-type": (Number, [3]),
    "named-tuple": (Row, [Row(dt.datetime(2024, 1, 1), 2)]),
    "dataclass": (Place, [Place("x", dt.date(2024, 1, 1), frozenset({"a"}))]),
    "list-of-models": (list[Inner], [[Inner(at=dt.datetime(2024, 1, 1), price=Decimal("1.5"))]]),
    "uuid4": (pydantic.UUID4, [uuid.UUID("12345678-1234-4678-a234-567812345678")]),
    "aware": (pydantic.AwareDatetime, [dt.datetime(2024, 1, 1, tzinfo=ZONE)]),
    "naive": (pydantic.NaiveDatetime, [dt.datetime(2024, 1, 1)]),
    "http": (pydantic.HttpUrl, [pydantic.HttpUrl("https://a-b.example:80/c?d#e")]),
    "url": (pydantic.AnyUrl, [pydantic.AnyUrl("git://host/x")]),
    "secret": (pydantic.SecretStr, []),
}


@functools.cache
def bundle_of(name: str, as_model: bool) -> Bundle:
    """Of the type as an annotation, or as the root of a model, whose schema pydantic writes."""
    kind = TYPES[name][0]
    return compile_schema(pydantic.RootModel[kind] if as_model else kind, "builtin").bundle


def walks(bundle: Bundle, count: int, budget: int = 40) -> list[bytes]:
    """Texts of a bundle: uniformly random tokens of its masks."""
    found = []
    for seed in range(count):
        draw = random.Random(seed)
        matcher = Matcher(bundle, budget=max(budget, bundle.min_tokens["start"] or 0))
        mask, text = np.zeros(bundle.vocab.words, np.uint32), b""
        while not matcher.is_finished:
            matcher.fill(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            token = int(draw.choice(allowed))
            matcher.advance(token)
            text += bundle.vocab.token(token)
        found.append(text)
    return found


BOTH = pytest.mark.parametrize("as_model", [False, True], ids=["annotation", "model"])


@BOTH
@pytest.mark.parametrize("name", TYPES)
def test_what_pydantic_writes_is_a_text(name: str, as_model: bool) -> None:
    kind, values = TYPES[name]
    for value in values:
        text = pydantic.TypeAdapter(kind).dump_json(value)
        assert check(bundle_of(name, as_model), _spaced(text))["accepted"], text


def _spaced(text: bytes) -> bytes:
    return json.dumps(json.loads(text), ensure_ascii=False).encode()


@BOTH
@pytest.mark.parametrize("name", TYPES)
def test_what_masks_allow_pydantic_reads_as_we_do(name: str, as_model: bool) -> None:
    kind = TYPES[name][0]
    for text in walks(bundle_of(name, as_model), 25):
        theirs = pydantic.TypeAdapter(kind).validate_json(text)
        ours = read_value(kind, text)
        assert type(ours) is type(theirs), text
        if isinstance(ours, Decimal):  # a number comes to pydantic as a float; here no digit is lost
            assert ours == Decimal(text.decode().strip('"'))
            ours, theirs = float(ours), float(theirs)
        assert ours == theirs, text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (dt.datetime, '"2024-02-30T00:00:00"'),
        (dt.datetime, '"2024-01-01T00:00:60"'),
        (dt.datetime, '"0000-01-01T00:00:00"'),
        (dt.date, '"0000-02-29"'),
        (dt.date, '"1900-02-29"'),
        (dt.timedelta, '"P"'),
        (dt.timedelta, '"PT"'),
        (uuid.UUID, '"x"'),
        (dict[int, int], '{"x": 1}'),
        (dict[Annotated[str, Field(pattern="^a$")], int], '{"b": 1}'),
        (Annotated[set[int], Field(max_length=1)], "[1, 2]"),
        (pydantic.UUID4, '"12345678-1234-5678-a234-567812345678"'),
        (pydantic.HttpUrl, '"ftp://a"'),
        (pydantic.AwareDatetime, '"2024-01-01T00:00:00"'),
        (pydantic.NaiveDatetime, '"2024-01-01T00:00:00Z"'),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_refused(kind: Any, text: str) -> None:
    """pydantic refuses these, and so do the masks."""
    with pytest.raises(pydantic.ValidationError):
        pydantic.TypeAdapter(kind).validate_json(text)
    for one in (kind, pydantic.RootModel[kind]):
        assert not check(compile_schema(one, "builtin").bundle, text.encode())["accepted"]


def test_a_model_of_many_types() -> None:
    bundle = compile_schema(Model, "builtin").bundle
    for text in walks(bundle, 10, 300):
        assert isinstance(read_value(Model, text), Model)
    with pytest.raises(DecodeError, match="pydantic refuses this value") as caught:
        read_value(Model, '{"when": "yesterday"}')
    assert caught.value.place == "Model/when"


# -- calls


class Office:
    """Where methods are."""

    opened: list[Any]

    def __init__(self) -> None:
        self.opened = []

    def open(self, at: dt.datetime, for_: dt.timedelta = dt.timedelta(hours=1), who: Place | None = None) -> Any:
        """Open the office."""
        self.opened.append((at, for_, who))
        return at + for_

    @classmethod
    def rename(cls, name: Literal["a", "b"]) -> str:
        return f"{cls.__name__} {name}"

    @staticmethod
    def paint(color: Color) -> Color:
        return color


def pay(amount: Decimal, ids: list[uuid.UUID], **more: dt.date) -> tuple[Any, ...]:
    return amount, ids, more


OPEN = '{"name": "open", "arguments": {"at": "2024-01-01T10:00:00Z", "for_": "PT30M", "who": {"name": "x"}}}'
AT = dt.datetime(2024, 1, 1, 10, tzinfo=dt.timezone.utc)


def test_typed_arguments() -> None:
    office = Office()
    bundle = compile_tools([office.open, pay, Model], "builtin").bundle
    (call,) = read_calls(bundle, OPEN)
    assert call.typed() == {"at": AT, "for_": dt.timedelta(minutes=30), "who": Place("x")}
    assert run([call]) == [AT + dt.timedelta(minutes=30)] and office.opened[0][2] == Place("x")
    text = (
        '{"name": "pay", "arguments": {"amount": 0.12345678901234567890, '
        '"ids": ["00000000-0000-0000-0000-000000000001"], "d": "2024-01-01"}}'
    )
    (call,) = read_calls(bundle, text)
    assert run([call]) == [(Decimal("0.12345678901234567890"), [uuid.UUID(int=1)], {"d": dt.date(2024, 1, 1)})]


def test_a_file_knows_no_functions(tmp_path: pathlib.Path) -> None:
    office = Office()
    compile_tools([office.open, Place], "builtin").write(tmp_path / "x.toolc")
    bundle = Bundle.open(tmp_path / "x.toolc")
    (call,) = read_calls(bundle, OPEN)
    with pytest.raises(DecodeError, match=re.escape("write call.typed(open)")):
        call.typed()
    assert call.typed(office.open)["at"] == AT
    assert run([call], [office.open]) == run([call], {"open": office.open})
    with pytest.raises(DecodeError, match=r"no function has the name of this call; found 'open', expected one of pay"):
        run([call], [pay])
    (made,) = run(read_calls(bundle, '{"name": "Place", "arguments": {"name": "y"}}'), [Place])
    assert made == Place("y")


def test_nothing_runs_before_all_arguments_are_values() -> None:
    ran = []

    def first() -> None:
        ran.append(1)

    def second(day: dt.date) -> None:
        ran.append(2)

    bundle = compile_tools([first, second], "builtin").bundle
    good = read_calls(bundle, '{"name": "first", "arguments": {}}')[0]
    bad = dataclasses.replace(good, name="second", text="", arguments={"day": "today"}, declared=second)
    with pytest.raises(DecodeError, match="no value of the declared type; found 'today'") as caught:
        run([good, bad])
    assert not ran and caught.value.place == "second(day)"


def test_methods_lose_self() -> None:
    bundle = compile_tools([Office.open, Office.rename, Office.paint], "builtin").bundle
    names = [[name for name, _ in tool.get("parameters", [])] or tool["name"] for tool in bundle.tools]
    assert names == ["open", "rename", "paint"]
    (call,) = read_calls(bundle, OPEN)
    with pytest.raises(
        DecodeError, match=r"a method needs its object to run; found Office.open; give the method of an"
    ):
        run([call])
    assert run([call], [Office().open]) == [AT + dt.timedelta(minutes=30)]
    calls = '{"name": "rename", "arguments": {"name": "a"}}', '{"name": "paint", "arguments": {"color": "r"}}'
    assert [run(read_calls(bundle, text)) for text in calls] == [["Office a"], [Color.RED]]


def test_a_partial_function_has_the_name_of_its_function() -> None:
    tool = functools.partial(pay, ids=[])
    bundle = compile_tools([tool], "builtin").bundle
    (call,) = read_calls(bundle, '{"name": "pay", "arguments": {"amount": 1}}')
    assert run([call]) == [(Decimal(1), [], {})]


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder"])
def test_typed_in_protocols(protocol: str) -> None:
    """Arguments in other encodings are as typed."""
    from toolc.runtime import Reader, write_calls

    bundle = compile_tools([pay], "builtin", options=Options(protocol=protocol)).bundle
    written = write_calls(Reader(bundle, "required"), [("pay", {"amount": 2, "ids": [str(uuid.UUID(int=1))]})])
    assert written is not None
    assert written.reader.finish() is not None
    assert run(written.reader.calls) == [(Decimal(2), [uuid.UUID(int=1)], {})]


def test_functions_and_types_inside_of_documents() -> None:
    """A list may mix tools of MCP with functions; a tool's schema and a response format may be a type."""
    from toolc.compiler import compile_request

    mcp = {"name": "look", "description": "", "inputSchema": Model}
    openai = {"type": "function", "function": {"name": "find", "parameters": Place}}
    plain = {"type": "function", "function": {"name": "stop"}}
    bundle = compile_tools([pay, mcp, openai, plain], "builtin").bundle
    assert [tool["name"] for tool in bundle.tools] == ["pay", "look", "find", "stop"]
    (call,) = read_calls(bundle, '{"name": "find", "arguments": {"name": "x", "since": "2024-01-01"}}')
    assert call.typed() == Place("x", dt.date(2024, 1, 1))
    body = {"model": "m", "messages": [], "tools": [pay], "response_format": Model}
    compiled = compile_request(body, "builtin", options=Options(protocol="hermes"))
    assert compiled.report["begins"] == "either" and compiled.bundle.declared == {"pay": pay}
    with pytest.raises(Exception, match=r"found the class Model; a function may stand for a tool of a list"):
        compile_tools([{"type": "function", "function": {"name": "x", "description": Model}}], "builtin")


def test_members_of_an_enum_that_pydantic_reads_from_no_json() -> None:
    odd = enum.Enum("odd", {"A": "a", "PAIR": (1, 2)})
    bundle = compile_schema(pydantic.RootModel[odd], "builtin").bundle
    assert check(bundle, b'"a"')["accepted"] and not check(bundle, b"[1, 2]")["accepted"]
    assert read_value(odd, "[1, 2]") is odd.PAIR  # as an annotation toolc reads it itself


def test_limits_of_decimals_in_a_model() -> None:
    odd = pydantic.create_model("Odd", x=(Annotated[Decimal, Field(max_digits=3, ge=1)], ...))
    with pytest.raises(Exception, match="max_digits beside a bound has no JSON Schema") as caught:
        compile_schema(odd, "builtin")
    assert caught.value.place == "schema"  # type: ignore[attr-defined]
    large = compile_schema(Annotated[Decimal, Field(ge=10**70)], "builtin").bundle
    assert check(large, b"1" + b"0" * 70)["accepted"]
