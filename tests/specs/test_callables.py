"""Python callables as tools: which values their schemas take, and what is refused with its place."""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from decimal import Decimal
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from toolc.compiler.errors import SpecError
from toolc.compiler.specs import read_spec

pydantic = pytest.importorskip("pydantic")
annotated_types = pytest.importorskip("annotated_types")
Field = pydantic.Field


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Odd(enum.Enum):
    A = (1, 2)
    B = frozenset({1})


def dataclass_of(**members: Any) -> Any:
    """Always of the name Same."""
    return dataclasses.make_dataclass("Same", list(members.items()))


def typed_dict_of(**members: Any) -> Any:
    return typing.TypedDict("Same", members)  # type: ignore[misc]


def model_of(**members: Any) -> Any:
    return pydantic.create_model("Same", **{name: (kind, ...) for name, kind in members.items()})


def function(**annotations: Any) -> Any:
    """``def tool`` with these parameters, by name alone."""
    space: dict[str, Any] = {}
    exec(f"def tool({', '.join(annotations)}): ...", space)
    space["tool"].__annotations__ = annotations
    return space["tool"]


def accepts(item: Any, arguments: Any) -> bool:
    (tool,) = read_spec([item]).tools
    jsonschema.Draft202012Validator.check_schema(tool.schema)
    return bool(jsonschema.Draft202012Validator(tool.schema).is_valid(arguments))


# id; annotation of a; values that it takes; values that it does not
ANNOTATIONS: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("List", typing.List, [[], [1, "x"]], [{}, 1]),  # noqa: UP006
    ("Dict", typing.Dict, [{}, {"a": 1}], [[], 1]),  # noqa: UP006
    ("Set", typing.Set, [[1]], [1]),  # noqa: UP006
    ("FrozenSet", typing.FrozenSet, [[1]], [1]),  # noqa: UP006
    ("Sequence", typing.Sequence, [[1]], [{}]),
    ("Mapping", typing.Mapping, [{"a": 1}], [[]]),
    ("Iterable", typing.Iterable, [[1]], [{}]),
    ("frozenset", frozenset, [[1]], [1]),
    ("Tuple", typing.Tuple, [[], [1, "x"]], [1]),  # noqa: UP006
    ("tuple-of-none", tuple[()], [[]], [[1]]),
    ("literal-of-enum", Literal[Color.RED, 3], ["r", 3], ["b", "RED"]),
    ("field-ge", Annotated[int, Field(ge=3)], [3], [2]),
    ("decimal", Decimal, [1, 0.5, "1", "-0.50"], ["x", "NaN", True]),
    ("decimal-digits", Annotated[Decimal, Field(max_digits=3)], ["0.001", "100", "1.23"], ["1000", "12.34", 100]),
    (
        "decimal-places",
        Annotated[Decimal, Field(max_digits=4, decimal_places=2)],
        [Decimal("12.34"), "12.34", 0, -99],
        [100, "123", Decimal("0.001"), "0.001"],
    ),
    (
        "decimal-places-bounds",
        Annotated[Decimal, Field(ge=1, decimal_places=1)],
        [Decimal("1.5")],
        [0, "1.5", Decimal("1.25")],
    ),
    ("no-places", Annotated[Decimal, Field(decimal_places=0)], [15, "15"], [Decimal("0.5"), "1.5"]),
    ("decimal-bounds", Annotated[Decimal, Field(ge=Decimal("0.25"), lt=Decimal("1e1"))], [0.25, 9.5], [0.2, 10]),
    (
        "decimal-beyond-floats",
        Annotated[Decimal, annotated_types.Le(Decimal("0.30000000000000000001"))],
        [Decimal("0.30000000000000000001")],
        [Decimal("0.30000000000000000002")],
    ),
    (
        "decimal-multiple",
        Annotated[float, Field(multiple_of=Decimal("0.1"))],
        [Decimal("0.3"), 2],
        [Decimal("0.35")],
    ),
    ("decimal-of-int", Annotated[int, annotated_types.Gt(Decimal("2.5"))], [3], [2]),
    ("field-all", Annotated[float, Field(gt=1, lt=9, multiple_of=0.5)], [1.5], [1, 9, 2.3]),
    ("field-text", Annotated[str, Field(min_length=2, max_length=3, pattern="^a")], ["ab"], ["a", "abcd", "ba"]),
    ("field-list", Annotated[list[int], Field(min_length=1)], [[1]], [[]]),
    ("field-dict", Annotated[dict[str, int], Field(max_length=1)], [{"a": 1}], [{"a": 1, "b": 2}]),
    ("field-union", Annotated["int | str | None", Field(ge=3, max_length=1)], [3, None, "a"], [2, "ab"]),
    ("field-inside", list[Annotated[int, Field(ge=3, examples=[4])]], [[3]], [[2]]),
    ("two-bounds", Annotated[int, annotated_types.Ge(3), annotated_types.Ge(5)], [5], [4]),
    ("interval", Annotated[int, annotated_types.Interval(gt=1, le=4)], [4], [1, 5]),
    ("len", Annotated[str, annotated_types.Len(1, 2)], ["a"], ["", "abc"]),
    ("string-constraints", Annotated[str, pydantic.StringConstraints(pattern="^x$")], ["x"], ["y"]),
    ("other-metadata", Annotated[int, object(), "text"], [1], ["x"]),
    ("field-of-dataclass", dataclass_of(n=Annotated[int, Field(ge=3)]), [{"n": 3}], [{"n": 2}]),
]


@pytest.mark.parametrize(
    ("annotation", "good", "bad"), [row[1:] for row in ANNOTATIONS], ids=[r[0] for r in ANNOTATIONS]
)
def test_annotation(annotation: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert accepts(function(a=annotation), {"a": value}), value
    for value in bad:
        assert not accepts(function(a=annotation), {"a": value}), value


@pytest.mark.parametrize("make", [dataclass_of, typed_dict_of, model_of])
def test_bounds_that_no_float_stands_for(make: Any) -> None:
    """The schema of such a model could not be written as JSON."""
    least = Decimal("0.30000000000000000001")
    bounded = Annotated[float, annotated_types.Ge(least)]
    one, two = make(x=bounded), make(x=bounded, y=int)
    tool = function(a=one, b=two, c=one)
    good = {"a": {"x": least}, "b": {"x": 1, "y": 1}, "c": {"x": 0.5}}
    assert accepts(tool, good) and not accepts(tool, good | {"c": {"x": Decimal("0.3")}})


@pytest.mark.parametrize("make", [dataclass_of, typed_dict_of, model_of])
def test_classes_of_one_name_are_two(make: Any) -> None:
    one, two = make(x=int), make(y=str)
    tool = function(a=one, b=two, c=one)
    assert accepts(tool, {"a": {"x": 1}, "b": {"y": "s"}, "c": {"x": 1}})
    for wrong in ({"a": {"y": "s"}}, {"b": {"x": 1}}, {"c": {"y": "s"}}):
        assert not accepts(tool, {"a": {"x": 1}, "b": {"y": "s"}, "c": {"x": 1}} | wrong), wrong


def test_models_of_one_name_inside_of_models() -> None:
    one, two = model_of(x=int), model_of(y=str)
    outer = pydantic.create_model("Outer", a=(one, ...), b=(two, ...))
    tool = function(o=outer, p=two, q=one)
    good: dict[str, Any] = {"o": {"a": {"x": 1}, "b": {"y": "s"}}, "p": {"y": "s"}, "q": {"x": 1}}
    assert accepts(tool, good)
    for wrong in ({"p": {"x": 1}}, {"q": {"y": "s"}}, {"o": {"a": {"y": "s"}, "b": {"y": "s"}}}):
        assert not accepts(tool, good | wrong), wrong


In = pydantic.create_model("In", x=(int, ...))
Out = pydantic.create_model("Out", i=(In, ...))
Open = pydantic.create_model("Open", __config__={"extra": "allow"}, x=(int, ...))
OutOpen = pydantic.create_model("OutOpen", i=(Open, ...))


@pytest.mark.parametrize(
    ("item", "good", "more"),
    [
        (function(o=Out, i=In), {"o": {"i": {"x": 1}}, "i": {"x": 1}}, {"i": {"x": 1, "z": 2}}),
        (function(i=In, o=Out), {"o": {"i": {"x": 1}}, "i": {"x": 1}}, {"i": {"x": 1, "z": 2}}),
        (function(i=In, o=Out), {"o": {"i": {"x": 1}}, "i": {"x": 1}}, {"o": {"i": {"x": 1, "z": 2}}}),
        (Out, {"i": {"x": 1}}, {"i": {"x": 1, "z": 2}}),
        (Out, {"i": {"x": 1}}, {"z": 1}),
    ],
    ids=["outer-first", "inner-first", "inner-first-nested", "model-nested", "model"],
)
def test_models_are_closed(item: Any, good: Any, more: Any) -> None:
    assert accepts(item, good) and not accepts(item, good | more)


def test_models_are_open_where_they_say_so() -> None:
    assert accepts(Open, {"x": 1, "z": 1})
    assert accepts(OutOpen, {"i": {"x": 1, "z": 1}}) and not accepts(OutOpen, {"i": {"x": 1}, "z": 1})
    assert accepts(function(i=In, o=Open), {"i": {"x": 1}, "o": {"x": 1, "z": 1}})


class Node(pydantic.BaseModel):  # type: ignore[name-defined]
    v: int
    kids: list[Node] = []


def test_recursive_models() -> None:
    from toolc.compiler import compile_tools

    tree = {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3}]}]}
    wrong = {"v": 1, "kids": [{"v": 2, "z": 1}]}
    for item, good, bad in ((Node, tree, wrong), (function(n=Node), {"n": tree}, {"n": wrong})):
        assert accepts(item, good) and not accepts(item, bad) and not accepts(item, {})
        assert compile_tools([item]).report["tools"]


def test_a_field_as_a_default() -> None:
    def needed(a: int = Field(ge=3)) -> None: ...
    def free(a: int = Field(5, ge=3)) -> None: ...

    assert accepts(needed, {"a": 3}) and not accepts(needed, {"a": 2}) and not accepts(needed, {})
    assert accepts(free, {}) and not accepts(free, {"a": 2})


def test_a_description_is_kept() -> None:
    (tool,) = read_spec([function(a=Annotated[int, Field(description="how many", examples=[1])])]).tools
    assert isinstance(tool.schema, dict)
    assert tool.schema["properties"]["a"] == {"type": "integer", "description": "how many", "examples": [1]}


def test_dataclasses_of_pydantic() -> None:
    made = pydantic.dataclasses.dataclass(
        types.new_class("Made", (), {}, lambda body: body.update(__annotations__={"x": int}, x=Field(ge=3)))
    )
    assert accepts(made, {"x": 3}) and not accepts(made, {"x": 2}) and not accepts(made, {"x": 3, "z": 1})
    assert accepts(function(m=made), {"m": {"x": 3}}) and not accepts(function(m=made), {"m": {"x": 2}})


# id; callable; place; words
REFUSED: list[tuple[str, Any, str, str]] = [
    ("literal-bytes", function(a=Literal[b"x"]), "tool(a)", "found bytes"),
    ("enum-of-set", function(a=Odd), "tool(a)", "found Odd.B: frozenset"),
    ("model-callable", pydantic.create_model("M", f=(typing.Callable[[int], int], ...)), "M", "CallableSchema"),
    ("decimal-nan", function(a=Annotated[float, Field(ge=Decimal("NaN"))]), "tool(a)", "found Decimal('NaN')"),
    ("decimal-digits", function(a=Annotated[Decimal, Field(max_digits=3, ge=1)]), "tool(a)", "max_digits=3"),
    ("keys", function(a=dict[float, int]), "tool(a)", "keys that JSON can write"),
    (
        "model-of-objects",
        pydantic.create_model("M", f=(int, Field(json_schema_extra={"x": object()}))),
        "M",
        "unknown type",
    ),
    ("model-list", pydantic.RootModel[list[int]], "RootModel[list[int]]", "type array"),
    ("field-digits", function(a=Annotated[float, Field(max_digits=3)]), "tool(a)", "max_digits=3"),
    ("field-alias", function(a=Annotated[int, Field(alias="b")]), "tool(a)", "alias='b'"),
    (
        "field-extra",
        function(a=Annotated[int, Field(json_schema_extra={"maximum": 1})]),
        "tool(a)",
        "json_schema_extra",
    ),
    (
        "strip",
        function(a=Annotated[str, pydantic.StringConstraints(strip_whitespace=True)]),
        "tool(a)",
        "strip_whitespace",
    ),
    ("predicate", function(a=Annotated[int, annotated_types.Predicate(bool)]), "tool(a)", "found func="),
    ("bound-of-text", function(a=Annotated[str, annotated_types.Ge("b")]), "tool(a)", "found 'b'"),
    ("unresolved", function(a="Foo"), "tool", "'Foo' is not defined"),
    ("annotation-syntax", function(a="in t"), "tool", "cannot be resolved"),
    ("two-of-one-name", [function(), function()], "callables#/1/name", "that of callables#/0/name"),
    ("surrogate", function(a=Literal["\ud800"]), "callables#/0/parameters/properties/a/enum/0", "lone surrogate"),
]


@pytest.mark.parametrize(("item", "place", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(item: Any, place: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(item)
    assert caught.value.place == place and words in str(caught.value), str(caught.value)


@dataclasses.dataclass
class Box:
    wide: int
    name: str = "x"
    inside: list[int] = dataclasses.field(default_factory=list)


def test_defaults_of_a_signature() -> None:
    """They were in no schema, so a call that says one was another call than the one that leaves it out."""

    def f(
        place: str,
        units: Literal["c", "f"] = "c",
        days: Annotated[int, Field(ge=1)] = 3,
        more: int = Field(7, ge=3),
        some: int | None = None,
        free: Any = None,
        color: Color = Color.RED,  # what JSON says of these is another value than Python's
        pair: tuple[int, ...] = (1,),
        bare: int = None,  # type: ignore[assignment]  # noqa: RUF013
        odd: float = float("nan"),
        half: str = "\ud800",
    ) -> None: ...

    function, box = read_spec([f, Box]).tools
    assert isinstance(function.schema, dict) and isinstance(box.schema, dict)
    told = {name: one["default"] for name, one in function.schema["properties"].items() if "default" in one}
    assert told == {"units": "c", "days": 3, "more": 7, "some": None, "free": None}
    assert [one.get("default") for one in box.schema["properties"].values()] == [None, "x", None]


def test_a_partial_function_whose_annotations_are_text() -> None:
    def f(place: Literal["a", "b"], days: int = 1, more: str = "x") -> None: ...

    (tool,) = read_spec([functools.partial(functools.partial(f, more="y"), days=2)]).tools
    assert isinstance(tool.schema, dict)
    assert tool.schema["properties"] == {
        "place": {"enum": ["a", "b"]},
        "days": {"type": "integer", "default": 2},
        "more": {"type": "string", "default": "y"},
    }
    assert tool.schema["required"] == ["place"]
