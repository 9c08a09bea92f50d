"""Unions with a ``discriminator``: narrowed to tags at most, and never looser than the same union without it."""

from __future__ import annotations

import json
import random
from itertools import permutations
from typing import Any

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.schema import LarkWriter, SchemaOptions

from .judge import Judge
from .recogniser import Compiled

REF = "#/components/schemas/"


def _writer(schema: Any, version: str = "3.0.3", **schemas: Any) -> tuple[Compiled, LarkWriter]:
    document = {"openapi": version, "components": {"schemas": {"root": schema, **schemas}}}
    writer = LarkWriter(SchemaOptions(whitespace="compact"))
    rule = writer.add(schema, document=document, pointer="/components/schemas/root")
    return Compiled(f"start: {rule}\n" + writer.text()), writer


def _openapi(schema: Any, version: str = "3.0.3", **schemas: Any) -> Compiled:
    return _writer(schema, version, **schemas)[0]


def _union(*names: str, keyword: str = "oneOf", tag: str = "kind", **more: Any) -> dict[str, Any]:
    return {keyword: [{"$ref": REF + name} for name in names], "discriminator": {"propertyName": tag, **more}}


def _closed(kind: Any, *, needs: tuple[str, ...] = ("kind",), **members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": kind, **members},
        "required": list(needs),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
CAT, DOG = _closed(TEXT, lives={"type": "integer"}), _closed(TEXT, barks={"type": "boolean"})
CATS = '{"kind":"Cat","lives":9}', '{"kind":"Dog","barks":true}'  # follow the tag
DOGS = '{"kind":"Dog","lives":9}', '{"kind":"Cat","barks":true}'  # do not

CASES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    ("open tags are narrowed", _union("Cat", "Dog"), {"Cat": CAT, "Dog": DOG}, CATS, (*DOGS, '{"kind":"x","lives":9}')),
    (
        "in anyOf, too, and the tag is there",
        _union("Cat", "Dog", keyword="anyOf"),
        {"Cat": {**CAT, "required": []}, "Dog": {**DOG, "required": []}},
        CATS,
        (*DOGS, "{}"),
    ),
    (
        "a mapping gives further names, by $ref and by name",
        _union("Cat", "Dog", mapping={"puss": REF + "Cat", "puppy": "Dog"}),
        {"Cat": CAT, "Dog": DOG},
        (*CATS, '{"kind":"puss","lives":9}', '{"kind":"puppy","barks":true}'),
        ('{"kind":"puppy","lives":9}',),
    ),
    (
        "and takes names from other branches",
        _union("Cat", "Dog", mapping={"Cat": "Dog", "Dog": "Cat"}),
        {"Cat": CAT, "Dog": DOG},
        DOGS,
        CATS,
    ),
    (
        "the values of a branch are right",
        _union("Cat", "Dog"),
        {"Cat": _closed({"enum": ["cat"]}, lives=TEXT), "Dog": _closed({"enum": ["dog"]}, barks=TEXT)},
        ('{"kind":"cat","lives":"a"}', '{"kind":"dog","barks":"a"}'),
        ('{"kind":"Cat","lives":"a"}', '{"kind":"dog","lives":"a"}'),
    ),
    (
        "also for the others, which are left open",
        _union("Cat", "Dog"),
        {"Cat": _closed({"const": "cat"}, lives=TEXT), "Dog": DOG},
        ('{"kind":"cat","lives":"a"}', '{"kind":"dog","barks":true}'),
        ('{"kind":"dog","lives":"a"}',),
    ),
    (
        "a mapping that names some of the values of a branch",
        _union("Cat", "Dog", mapping={"cat": REF + "Cat"}),
        {"Cat": _closed({"enum": ["cat", "kitten"]}, lives=TEXT), "Dog": DOG},
        ('{"kind":"kitten","lives":"a"}', '{"kind":"hound","barks":true}'),
        ('{"kind":"Cat","lives":"a"}',),
    ),
    (
        "a mapping that names all values of a branch: the other is narrowed",
        _union("Cat", "Dog", mapping={"cat": REF + "Cat", "kitten": REF + "Cat"}),
        {"Cat": _closed({"enum": ["cat", "kitten"]}, lives=TEXT), "Dog": DOG},
        ('{"kind":"kitten","lives":"a"}', '{"kind":"Dog","barks":true}'),
        ('{"kind":"hound","barks":true}',),
    ),
    (
        "tags that are numbers",
        _union("A", "B", mapping={"1": REF + "A", "2": REF + "B"}),
        {"A": _closed({"enum": [1]}, a=TEXT), "B": _closed({"type": "integer"}, b=TEXT)},
        ('{"kind":1,"a":"x"}', '{"kind":7,"b":"x"}'),
        ('{"kind":"1","a":"x"}', '{"kind":2,"a":"x"}'),
    ),
    (
        "a branch that can have no tag",
        _union("Cat", "Bare"),
        {"Cat": CAT, "Bare": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}},
        ('{"kind":"tom","lives":9}', '{"a":"x"}'),
        (),
    ),
    (
        "a tag with a pattern",
        _union("Cat", "Dog", mapping={"cat": "Cat", "dog": "Dog"}),
        {"Cat": _closed({"pattern": "^[a-z]+$", **TEXT}, lives=TEXT), "Dog": _closed(TEXT, barks=TEXT)},
        ('{"kind":"cat","lives":"a"}', '{"kind":"Dog","barks":"a"}'),
        ('{"kind":"Cat","lives":"a"}', '{"kind":"tom","lives":"a"}'),
    ),
    (
        "branches without a name, and other types than objects",
        {
            "anyOf": [{"$ref": REF + "Cat"}, _closed(TEXT, free=TEXT), {"type": "integer"}, {"$ref": REF + "Word"}],
            "discriminator": {"propertyName": "kind"},
        },
        {"Cat": CAT, "Word": TEXT},
        ('{"kind":"Cat","lives":9}', '{"kind":"any","free":"a"}', "7", '"x"'),
        ('{"kind":"any","lives":9}',),
    ),
    (
        "unions inside of each other, with other tags",
        _union("Cat", "Hound", mapping={"poodle": "Hound", "husky": "Hound"}),
        {
            "Cat": CAT,
            "Hound": _union("Poodle", "Husky", mapping={"poodle": "Poodle", "husky": "Husky"}),
            "Poodle": _closed(TEXT, curls=TEXT),
            "Husky": _closed(TEXT, pulls=TEXT),
        },
        ('{"kind":"poodle","curls":"a"}', '{"kind":"husky","pulls":"a"}', '{"kind":"Cat","lives":9}'),
        ('{"kind":"husky","curls":"a"}', '{"kind":"Hound","curls":"a"}', '{"kind":"tom","lives":9}'),
    ),
    (
        "unions inside of each other, with no tag in common",
        _union("Cat", "Hound"),
        {
            "Cat": CAT,
            "Hound": _union("Poodle", "Husky"),
            "Poodle": _closed(TEXT, curls=TEXT),
            "Husky": _closed(TEXT, pulls=TEXT),
        },
        ('{"kind":"Cat","lives":9}', '{"kind":"Poodle","curls":"a"}', '{"kind":"Husky","pulls":"a"}'),
        ('{"kind":"Cat","curls":"a"}',),
    ),
    (
        "what is around a union says which values there are",
        {"allOf": [_union("Cat", "Dog"), {"properties": {"kind": {"enum": ["tom", "rex"]}}}]},
        {"Cat": CAT, "Dog": DOG},
        ('{"kind":"tom","lives":9}', '{"kind":"rex","barks":true}'),
        CATS,
    ),
    (
        "or that the tag is not there",
        {"allOf": [_union("Cat", "Dog"), {"properties": {"kind": {"not": {}}}}]},
        {"Cat": {**CAT, "required": ["lives"]}, "Dog": {**DOG, "required": ["barks"]}},
        ('{"lives":9}', '{"barks":true}'),
        CATS,
    ),
    (
        "or that there is no room for it",
        {"allOf": [_union("Cat", "Dog"), {"maxProperties": 1}]},
        {"Cat": {**CAT, "required": ["lives"]}, "Dog": {**DOG, "required": ["barks"]}},
        ('{"lives":9}', '{"barks":true}'),
        CATS,
    ),
    (
        "the complement is that of the whole union",
        {"not": _union("Cat", "Dog")},
        {"Cat": CAT, "Dog": DOG},
        ("7", '{"kind":8}'),
        (*CATS, *DOGS, '{"kind":"tom","lives":9}'),
    ),
    (
        "exactly one of oneOf, as without it",
        _union("Cat", "Dog"),
        {"Cat": {**CAT, "required": ["kind"]}, "Dog": {**DOG, "required": ["kind"]}},
        CATS,
        ('{"kind":"Cat"}',),
    ),
    (
        "a tag that no branch declares",
        _union("Cat", "Dog", keyword="anyOf"),
        {"Cat": {"type": "object", "properties": {"lives": TEXT}}, "Dog": {"required": ["barks"], "type": "object"}},
        ('{"lives":"a","kind":"Cat"}', '{"barks":1,"kind":"Dog"}'),
        ('{"lives":"a","kind":"Mouse"}', '{"lives":"a"}'),
    ),
    (
        "a mapping of no use",
        _union("Cat", "Dog", mapping={"x": 1, "y": None, "z": "Mouse"}),
        {"Cat": CAT, "Dog": DOG},
        CATS,
        DOGS,
    ),
    ("a mapping that is none", _union("Cat", "Dog", mapping=None), {"Cat": CAT, "Dog": DOG}, CATS, DOGS),
    (
        "names that a pointer writes otherwise",
        {"oneOf": [{"$ref": REF + "My%20Cat"}, {"$ref": REF + "a~1b"}], "discriminator": {"propertyName": "kind"}},
        {"My Cat": CAT, "a/b": DOG},
        ('{"kind":"My Cat","lives":9}', '{"kind":"a/b","barks":true}'),
        ('{"kind":"My%20Cat","lives":9}', '{"kind":"a~1b","barks":true}'),
    ),
    (
        "on a parent it is an annotation",
        {"$ref": REF + "Pet"},
        {"Pet": {"type": "object", "required": ["kind"], "properties": {"kind": TEXT},
                 "discriminator": {"propertyName": "kind", "mapping": {"cat": "Cat"}}},
         "Cat": {"allOf": [{"$ref": REF + "Pet"}, {"required": ["lives"]}]}},
        ('{"kind":"horse"}', '{"kind":"cat"}'),
        ("{}",),
    ),
    (
        "beside unevaluatedProperties it is an annotation",
        {**_union("Cat", "Dog"), "unevaluatedProperties": False},
        {"Cat": CAT, "Dog": DOG},
        (*CATS, *DOGS[:0], '{"kind":"tom","lives":9}'),
        ('{"kind":"tom","lives":9,"x":1}',),
    ),
]  # fmt: skip


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("name, root, schemas, valid, invalid", CASES, ids=[name for name, *_ in CASES])
def test_cases(
    name: str, root: dict[str, Any], schemas: dict[str, Any], valid: tuple[str, ...], invalid: tuple[str, ...],
    version: str,
) -> None:  # fmt: skip
    if "unevaluated" in name and version == "3.0.3":
        pytest.skip("no keyword of 3.0")
    if "const" in json.dumps(schemas) and version == "3.0.3":
        schemas = json.loads(json.dumps(schemas).replace('"const": "cat"', '"enum": ["cat"]'))
    ours = _openapi(root, version, **schemas)
    assert [text for text in valid if not ours.accepts(text)] == []
    assert [text for text in invalid if ours.accepts(text)] == []
    judge = _judge({"root": root, **schemas})
    assert [text for text in valid if not judge.accepts(text)] == []


def test_the_report_says_whether_a_union_is_narrowed() -> None:
    listed = {"Cat": _closed({"enum": ["cat"]}), "Dog": DOG}
    for schemas, status in (({"Cat": CAT, "Dog": DOG}, "enforced"), (listed, "annotation")):
        union = _union("Cat", "Dog")
        root = {"type": "object", "properties": {"a": union, "b": union}, "required": ["a", "b"]}
        _, writer = _writer(root, **schemas)
        found = {place: said for place, keyword, said, _ in writer.report() if keyword == "discriminator"}
        assert found == dict.fromkeys((f"{REF}root/properties/a", f"{REF}root/properties/b"), status)


def test_unions_that_lead_to_themselves() -> None:
    tree = _closed(TEXT, needs=("kind", "children"), children={"type": "array", "items": {"$ref": REF + "root"}})
    ours = _openapi(_union("Leaf", "Tree"), Leaf=_closed(TEXT), Tree=tree)
    assert ours.accepts('{"kind":"Tree","children":[{"kind":"Leaf"},{"kind":"Tree","children":[]}]}')
    assert not ours.accepts('{"kind":"Tree","children":[{"kind":"Tree"}]}')


def test_unions_far_inside_of_each_other() -> None:
    deep = {f"u{n}": _union(f"u{n + 1}", "Cat", keyword="anyOf") for n in range(60)} | {"u60": DOG, "Cat": CAT}
    ours = _openapi({"$ref": REF + "u0"}, **deep)
    assert ours.accepts('{"kind":"Dog","barks":true}') and ours.accepts('{"kind":"any","lives":9}')


# -- unions at random


def _judge(schemas: dict[str, Any]) -> Judge:
    """Of the root, without discriminators."""

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {key: without(one) for key, one in value.items() if key != "discriminator"}

    return Judge({"$ref": REF + "root", "components": {"schemas": without(schemas)}})


class _Union:
    """A union at random, what is around it, and texts."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.names = ["A", "B", "C"][: rng.choice((1, 2, 2, 3, 3))]
        self.schemas: dict[str, Any] = {name: self._branch(rng, name) for name in self.names}
        keyword = rng.choice(("oneOf", "anyOf"))
        options: list[Any] = [{"$ref": REF + name} for name in self.names]
        self.tags = [{name} for name in self.names]
        said: dict[str, Any] = {"propertyName": "t"}
        if rng.random() < 0.5:
            keys = rng.sample(["a", "b", "c", "1", "A", "B"], rng.randint(1, 4))
            mapping = {key: rng.choice(self.names) for key in keys}
            said["mapping"] = {key: rng.choice((REF, "")) + name for key, name in mapping.items()}
            for tags in self.tags:
                tags -= mapping.keys()
            for key, name in mapping.items():
                self.tags[self.names.index(name)].add(key)
        if rng.random() < 0.3:
            options.insert(rng.randint(0, len(options)), rng.choice(
                ({"type": "integer"}, {"type": "object", "required": ["z"]}, {"type": "null"})))  # fmt: skip
        self.schemas["union"] = {keyword: options, "discriminator": said}
        around = rng.random()
        ref = {"$ref": REF + "union"}
        if around < 0.6:
            self.schemas["root"] = self.schemas["union"]
        elif around < 0.75:
            tag = rng.choice(({"enum": ["a", "A", "q"]}, {"maxLength": 1}, {"enum": [1, "b", "B"]}, {"type": "string"}))
            self.schemas["root"] = {"allOf": [ref, {"properties": {"t": tag}}]}
        elif around < 0.85:
            other = {"type": "object", "required": ["t", "b"], "properties": {"t": {"type": "string"}}}
            self.schemas["root"] = {rng.choice(("anyOf", "oneOf")): [ref, other]}
        elif around < 0.95:
            self.schemas["root"] = {"type": "object", "not": ref}
        else:
            self.schemas["root"] = {"if": ref, "then": {"required": ["a"]}, "else": {"required": ["b"]}}
        values = [None, "a", "b", "c", "A", "B", "C", "1", "q", 1, 2]
        self.values = [
            {key: value for key, value in (("t", t), ("a", a), ("b", b)) if value is not None}
            for t in values for a in (None, 1, "x") for b in (None, 1)
        ]  # fmt: skip

    def _branch(self, rng: random.Random, name: str) -> dict[str, Any]:
        tag: Any = rng.choice((
            {"type": "string"}, {"type": "string"}, {"type": "string"}, {"enum": [name.lower()]}, {"const": name},
            {"enum": [name, name.lower()]}, {"type": "integer"}, {"enum": [1]}, {"pattern": "^[a-c]$"}, None, {},
        ))  # fmt: skip
        own = {"a": {"type": rng.choice(("integer", "string"))}, "b": {"type": "integer"}}
        kept = {key: value for key, value in own.items() if rng.random() < 0.7}
        found: dict[str, Any] = {"type": "object", "properties": kept if tag is None else {"t": tag, **kept}}
        names = ["t"] * (rng.random() < 0.6) + [key for key in kept if rng.random() < 0.4]
        if names:
            found["required"] = names
        if rng.random() < 0.4:
            found["additionalProperties"] = False
        if rng.random() < 0.15:
            found = {"allOf": [found, {"type": "object"}]}
        return found


@pytest.mark.parametrize("seed", range(24))
def test_no_union_is_looser_and_tags_are_followed(seed: int) -> None:
    made = _Union(seed)
    judge = _judge(made.schemas)
    branches = [_judge({**made.schemas, "root": {"$ref": REF + name}}) for name in made.names]
    orders = [[json.dumps(dict(order), separators=(",", ":")) for order in permutations(value.items())]
              for value in made.values]  # fmt: skip
    texts = [order[0] for order in orders]
    valid = [judge.accepts(text) for text in texts]
    union = {key: value for key, value in made.schemas["union"].items() if key != "discriminator"}
    plain = {**made.schemas, "union": union}
    if plain["root"] is made.schemas["union"]:
        plain["root"] = plain["union"]
    try:
        free = _openapi(plain.pop("root"), "3.1.0", **plain)
    except UnsatisfiableError:
        with pytest.raises(UnsatisfiableError):
            _openapi(made.schemas["root"], "3.1.0", **made.schemas)
        return
    ours = _openapi(made.schemas["root"], "3.1.0", **made.schemas)
    for value, spelled, text, right in zip(made.values, orders, texts, valid, strict=True):
        accepted = any(ours.accepts(one) for one in spelled)
        without = any(free.accepts(one) for one in spelled)
        assert without == right, text
        assert right or not accepted, text
        if right and not accepted:  # of no branch that it meets is its tag one
            met = [tags for tags, branch in zip(made.tags, branches, strict=True) if branch.accepts(text)]
            assert not any(value.get("t") in tags for tags in met), text
            assert met, text


def test_a_union_is_looked_at_in_parts() -> None:
    """What keeps a union from having a value is sought by leaving out keywords around its discriminator."""
    one = {"type": "object", "properties": {"kind": {"type": "string"}}}
    union = {"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}
    runner = {**union, "discriminator": {"propertyName": "kind"}, "required": ["kind"], "maxProperties": 0}
    schemas = {"A": one, "B": {**one, "required": ["b"]}, "R": runner}
    body = {"content": {"application/json": {"schema": {"properties": {"r": {"$ref": "#/components/schemas/R"}}}}}}
    paths = {"/a": {"put": {"operationId": "a", "requestBody": body}}}
    document = {"openapi": "3.0.3", "paths": paths, "components": {"schemas": schemas}}
    made = compile_tools(document, "builtin", options=Options(jobs=1))
    assert [one["pointer"].rpartition("/")[2] for one in made.report["unwritable"]] == ["r"]
