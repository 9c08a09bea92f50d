"""Is a JSON text valid under a schema? ``jsonschema``, mended where it is not exact enough to be an oracle.

Mended       numbers are int and Decimal, so bounds and ``multipleOf`` are exact; patterns are read by an ECMA-262
             engine; formats are asserted by format_checkers.py; objects are judged over their pairs, so a key that
             stands twice is judged twice and counts twice; a declared key that stands twice is an error; what is
             evaluated is found by rules of its own (jsonschema takes ``additionalProperties: S`` for names of keys, and
             never looks at the schema of ``unevaluatedItems``); the draft is that of the resource, which only a
             ``$schema`` beside its identifier can change, whatever way leads into it; equality is that of JSON; bounds
             and counts are read as written, also booleans of draft 4 where no draft is named.
Leaves out   references to other documents, unless a registry is given.
Invariants   nothing is shared with compiler/schema.
Declared     a key is declared where ``properties`` or ``required`` names it, in a schema that must hold. Inside of
             ``not``, ``if``, ``contains``, and to count the branches of ``oneOf``, only values are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import attrs
import regress
from jsonschema import ValidationError, validators
from referencing.jsonschema import lookup_recursive_ref, specification_with

from .format_checkers import CHECKERS

Errors = Iterator[ValidationError]


class Pairs(dict[str, Any]):
    """An object as it stands in a text: a dict for look-ups, and ``pairs``, duplicates included, in order."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = tuple(pairs)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def read(text: str) -> Any:
    """The value of a JSON text, exactly; ValueError if it is none."""
    value = json.loads(text, object_pairs_hook=Pairs, parse_float=Decimal, parse_constant=_no_constant)
    text.encode()  # UnicodeEncodeError, a ValueError, for a lone surrogate
    return value


def schema_of(text: str) -> Any:
    """A schema as its JSON text spells it: every number that is no integer as a Decimal."""
    return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)


class Schema(dict[str, Any]):
    """A schema, or another object in it, that knows the draft of the resource that it is a part of."""

    draft: int


def exact(schema: Any, draft: int) -> Any:
    """A schema with every float as the Decimal that Python writes for it; ``draft`` is that of the resource around it.

    A float has lost what its text said beyond that: schemas from texts are read by `schema_of`.
    """
    if isinstance(schema, dict):
        draft = _own_draft(schema, draft)
        made = Schema((key, exact(value, draft)) for key, value in schema.items())
        made.draft = draft
        return made
    if isinstance(schema, list):
        return [exact(value, draft) for value in schema]
    return Decimal(repr(schema)) if isinstance(schema, float) else schema


def _own_draft(schema: dict[str, Any], around: int) -> int:
    """The draft inside of a schema: it may name one where it has an identifier."""
    own = next((draft for mark, draft in MARKS.items() if mark in str(schema.get("$schema"))), around)
    name = schema.get("$id" if own > 4 else "id")
    hidden = own <= 7 and isinstance(schema.get("$ref"), str)
    return own if isinstance(name, str) and not name.startswith("#") and not hidden else around


def key_of(value: Any) -> Hashable:
    """Equal for equal JSON values, and for no others."""
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Pairs) else value.items()
        return ("object", tuple(sorted(((name, key_of(item)) for name, item in pairs), key=repr)))
    if isinstance(value, list):
        return ("array", tuple(map(key_of, value)))
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return ("number", Fraction(value))
    return (type(value).__name__, value)


@lru_cache(maxsize=4096)
def _regex(pattern: str) -> Any:
    try:
        return regress.Regex(pattern, "u")
    except regress.RegressError:
        return regress.Regex(pattern)  # annex B: identity escapes and lone brackets


def found(pattern: str, text: str) -> bool:
    """Whether an ECMA-262 expression is found in a text."""
    return _regex(pattern).find(text) is not None


# -- keywords: (validator, value of the keyword, instance, schema) -> errors


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _simple(kind: Callable[[Any], bool], holds: Callable[[Any, Any, dict[str, Any]], bool], words: str) -> Any:
    def check(validator: Any, operand: Any, instance: Any, schema: dict[str, Any]) -> Errors:
        if kind(instance) and not holds(operand, instance, schema):
            yield ValidationError(f"{str(instance)[:80]} {words} {str(operand)[:80]}")

    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, Pairs)


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _minimum(bound: Any, value: Any, schema: dict[str, Any]) -> bool:
    return value > bound if schema.get("exclusiveMinimum") is True else value >= bound


def _maximum(bound: Any, value: Any, schema: dict[str, Any]) -> bool:
    return value < bound if schema.get("exclusiveMaximum") is True else value <= bound


def _format(validator: Any, name: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if name == "duration" and validator.DRAFT < 2019:  # which defines it
        return
    check = CHECKERS.get(name) if isinstance(name, str) else None
    if check is not None and isinstance(instance, str) and not check(instance):
        yield ValidationError(f"{instance[:80]!r} is no {name}")


def _properties(validator: Any, named: dict[str, Any], instance: Any, schema: dict[str, Any]) -> Errors:
    for name, value in instance.pairs if _is_object(instance) else ():
        if name in named:
            yield from validator.descend(value, named[name], path=name, schema_path=name)


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, schema: dict[str, Any]) -> Errors:
    for name, value in instance.pairs if _is_object(instance) else ():
        for pattern, inner in patterns.items():
            if found(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _is_additional(name: str, schema: dict[str, Any]) -> bool:
    return name not in schema.get("properties", {}) and not any(
        found(pattern, name) for pattern in schema.get("patternProperties", {})
    )


def _additional(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    for name, value in instance.pairs if _is_object(instance) else ():
        if _is_additional(name, schema):
            yield from validator.descend(value, inner, path=name)


def _property_names(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    for name in instance if _is_object(instance) else ():
        yield from validator.descend(name, inner)


def _items(validator: Any, items: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if not _is_array(instance):
        return
    if isinstance(items, list):
        for index, (value, inner) in enumerate(zip(instance, items, strict=False)):
            yield from validator.descend(value, inner, path=index, schema_path=index)
    else:
        start = len(schema.get("prefixItems", ())) if validator.DRAFT >= 2020 else 0
        for index, value in enumerate(instance[start:]):
            yield from validator.descend(value, items, path=index + start)


def _additional_items(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if _is_array(instance) and isinstance(schema.get("items"), list):
        for value in instance[len(schema["items"]) :]:
            yield from validator.descend(value, inner)


def _contains(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if _is_array(instance):
        counts = validator.DRAFT >= 2019
        count = sum(_within(validator, inner).is_valid(value) for value in instance)
        low, high = (schema.get("minContains", 1), schema.get("maxContains", count)) if counts else (1, count)
        if not low <= count <= high:
            yield ValidationError(f"{count} items match, not {low} to {high}")


# -- keywords that look at values only, and the rule that a declared key stands once


def _within(validator: Any, schema: Any, *, plain: bool = True) -> Any:
    """A validator of a sub-schema; a plain one does not mind declared keys that stand twice."""
    made = _class_for(validator, schema, plain)
    resolver = validator._resolver
    if isinstance(schema, dict):
        resolver = resolver.in_subresource(made.SPECIFICATION.create_resource(schema))
    return made(schema, _resolver=resolver)


def _class_for(validator: Any, schema: Any, plain: bool = False) -> Any:
    """The validator class of a schema that is met from another one."""
    same = type(validator)
    draft = getattr(schema, "draft", None)
    if draft is None:  # from a registry, or made here
        draft = _own_draft(schema, same.DRAFT) if isinstance(schema, dict) else same.DRAFT
    return validator_class(draft, plain or same.PLAIN is same)


def _not(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if _within(validator, inner).is_valid(instance):
        yield ValidationError(f"{str(instance)[:80]} should not be valid under {str(inner)[:80]}")


def _if(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    branch = "then" if _within(validator, inner).is_valid(instance) else "else"
    if branch in schema:
        yield from validator.descend(instance, schema[branch], schema_path=branch)


def _one_of(validator: Any, options: list[Any], instance: Any, schema: dict[str, Any]) -> Errors:
    holding = [inner for inner in options if _within(validator, inner).is_valid(instance)]
    if len(holding) != 1:
        yield ValidationError(f"{len(holding)} branches of oneOf hold for {str(instance)[:80]}")
    else:
        yield from validator.descend(instance, holding[0])


def _once(check: Any) -> Any:
    """A keyword that declares names, each of which may stand once."""

    def both(validator: Any, names: Any, instance: Any, schema: dict[str, Any]) -> Errors:
        yield from check(validator, names, instance, schema)
        if _is_object(instance) and len(instance) < len(instance.pairs):
            keys = [name for name, _ in instance.pairs]
            for name in names:
                if keys.count(name) > 1:
                    yield ValidationError(f"the declared key {name!r} stands more than once")

    return both


# -- what is evaluated


def _evaluated(validator: Any, instance: Any, skip: str = "") -> set[Any]:
    """Names of members, or positions of items, that the validator's schema evaluates if it holds; less one keyword."""
    schema, done = validator.schema, set[Any]()
    for keyword, value in schema.items() if isinstance(schema, dict) else ():
        if keyword not in validator.VALIDATORS or keyword == skip:
            continue
        if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            look = validator._resolver
            target = lookup_recursive_ref(look) if keyword == "$recursiveRef" else look.lookup(value)
            made = _class_for(validator, target.contents, plain=True)
            done |= _evaluated(made(target.contents, _resolver=target.resolver), instance)
        elif keyword in ("allOf", "anyOf", "oneOf"):
            done |= _if_they_hold(validator, instance, value)
        elif keyword == "if":
            holds = _within(validator, value).is_valid(instance)
            done |= _if_they_hold(validator, instance, [value, schema.get("then" if holds else "else", True)])
        elif keyword in ("dependentSchemas", "dependencies") and _is_object(instance):
            inner = [one for name, one in value.items() if name in instance]  # a list of keys evaluates none
            done |= _if_they_hold(validator, instance, [one for one in inner if not isinstance(one, list)])
        elif _is_object(instance):
            done |= {name for name in instance if _is_evaluated(keyword, value, name, schema)}
        elif _is_array(instance):
            if keyword == "prefixItems" or (keyword == "items" and isinstance(value, list)):
                done |= set(range(len(value)))
            elif keyword in ("items", "unevaluatedItems", "additionalItems"):
                if keyword != "additionalItems" or isinstance(schema.get("items"), list):
                    done |= set(range(len(instance)))
            elif keyword == "contains" and validator.DRAFT >= 2020:
                done |= {index for index, item in enumerate(instance) if _within(validator, value).is_valid(item)}
    return done


def _if_they_hold(validator: Any, instance: Any, schemas: list[Any]) -> set[Any]:
    within = (_within(validator, schema) for schema in schemas)
    return {one for inner in within if inner.is_valid(instance) for one in _evaluated(inner, instance)}


def _is_evaluated(keyword: str, value: Any, name: str, schema: dict[str, Any]) -> bool:
    if keyword == "properties":
        return name in value
    if keyword == "patternProperties":
        return any(found(pattern, name) for pattern in value)
    if keyword == "additionalProperties":
        return _is_additional(name, schema)
    return keyword == "unevaluatedProperties"


def _unevaluated_properties(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if _is_object(instance):
        done = _evaluated(validator, instance, "unevaluatedProperties")
        for name, value in instance.pairs:
            if name not in done:
                yield from validator.descend(value, inner, path=name)


def _unevaluated_items(validator: Any, inner: Any, instance: Any, schema: dict[str, Any]) -> Errors:
    if _is_array(instance):
        done = _evaluated(validator, instance, "unevaluatedItems")
        for index, value in enumerate(instance):
            if index not in done:
                yield from validator.descend(value, inner, path=index)


# -- the validator classes


def _is_whole(value: Any) -> bool:
    """An integer of draft 4, where 1.0 is none."""
    return isinstance(value, int) and not isinstance(value, bool)


KEYWORDS: dict[str, Any] = {
    "minimum": _simple(_is_number, _minimum, "is below"),
    "maximum": _simple(_is_number, _maximum, "is above"),
    "exclusiveMinimum": _simple(
        _is_number, lambda bound, value, _: isinstance(bound, bool) or value > bound, "is not above"
    ),
    "exclusiveMaximum": _simple(
        _is_number, lambda bound, value, _: isinstance(bound, bool) or value < bound, "is not below"
    ),
    "multipleOf": _simple(
        _is_number, lambda of, value, _: (Fraction(value) / Fraction(of)).denominator == 1, "is no multiple of"
    ),
    "minLength": _simple(_is_text, lambda low, value, _: len(value) >= low, "is shorter than"),
    "maxLength": _simple(_is_text, lambda high, value, _: len(value) <= high, "is longer than"),
    "pattern": _simple(_is_text, lambda pattern, value, _: found(pattern, value), "does not match"),
    "format": _format,
    "minItems": _simple(_is_array, lambda low, value, _: len(value) >= low, "has fewer items than"),
    "maxItems": _simple(_is_array, lambda high, value, _: len(value) <= high, "has more items than"),
    "uniqueItems": _simple(
        _is_array, lambda on, value, _: not on or len(set(map(key_of, value))) == len(value), "uniqueItems"
    ),
    "items": _items,
    "additionalItems": _additional_items,
    "contains": _contains,
    "minProperties": _simple(_is_object, lambda low, value, _: len(value.pairs) >= low, "has fewer members than"),
    "maxProperties": _simple(_is_object, lambda high, value, _: len(value.pairs) <= high, "has more members than"),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "enum": _simple(lambda _: True, lambda options, value, _: key_of(value) in map(key_of, options), "is not in"),
    "const": _simple(lambda _: True, lambda option, value, _: key_of(value) == key_of(option), "is not"),
    "not": _not,
    "if": _if,
    "oneOf": _one_of,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
}


def _dependencies(validator: Any, demands: dict[str, Any], instance: Any, schema: dict[str, Any]) -> Errors:
    for name, demand in demands.items() if _is_object(instance) else ():
        if name in instance:
            inner = {"required": demand} if isinstance(demand, list) else demand
            yield from _within(validator, inner).iter_errors(instance)


BASES = {
    4: validators.Draft4Validator,
    6: validators.Draft6Validator,
    7: validators.Draft7Validator,
    2019: validators.Draft201909Validator,
    2020: validators.Draft202012Validator,
}
MARKS = {"draft-03": 4, "draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 2019, "2020-12": 2020}


def _evolve(self: Any, **changes: Any) -> Any:
    """As jsonschema's, but for the class, which is that of the resource's draft."""
    for field in attrs.fields(type(self)):
        if field.init:
            changes.setdefault(field.alias, getattr(self, field.name))
    return _class_for(self, changes["schema"])(**changes)


def _descend(
    self: Any, instance: Any, schema: Any, path: Any = None, schema_path: Any = None, resolver: Any = None
) -> Errors:
    """As jsonschema's, which takes the identifier, and what stands beside ``$ref``, as the outer draft has them."""
    inner = _within(self, schema, plain=False) if resolver is None else self.evolve(schema=schema, _resolver=resolver)
    for error in inner.iter_errors(instance):
        if path is not None:
            error.path.appendleft(path)
        if schema_path is not None:
            error.schema_path.appendleft(schema_path)
        yield error


@lru_cache(maxsize=16)
def validator_class(draft: int, plain: bool = False) -> Any:
    """The mended validator of a draft."""
    base = BASES[draft]
    known = {name: check for name, check in KEYWORDS.items() if name in base.VALIDATORS} | {
        "dependencies": _dependencies
    }
    if draft <= 4:
        known.update({name: KEYWORDS[name] for name in ("exclusiveMinimum", "exclusiveMaximum")})
    if not plain:
        known["properties"], known["required"] = _once(_properties), _once(base.VALIDATORS["required"])
    kinds = {"object": _is_object, "array": _is_array, "number": _is_number}
    kinds["integer"] = _is_whole if draft <= 4 else _is_integer
    checker = base.TYPE_CHECKER.redefine_many({name: lambda _, v, k=kind: k(v) for name, kind in kinds.items()})
    made = validators.extend(base, known, type_checker=checker)
    made.evolve, made.descend = _evolve, _descend
    made.DRAFT = draft
    made.SPECIFICATION = specification_with(base.META_SCHEMA.get("$id") or base.META_SCHEMA["id"])
    made.PLAIN = made if plain else validator_class(draft, True)
    return made


class Judge:
    """Judges texts under one schema.

    Args:
        schema: the schema, its numbers int and Decimal (`schema_of`); floats are taken as Python writes them.
        draft: 4, 6, 7, 2019 or 2020, where ``$schema`` names none.
    """

    def __init__(self, schema: Any, draft: int = 2020) -> None:
        name = schema.get("$schema") if isinstance(schema, dict) else None
        found = next((draft for mark, draft in MARKS.items() if mark in str(name)), draft)
        self.validator = validator_class(found)(exact(schema, found))

    def why_not(self, text: str) -> str | None:
        """Why a text is not valid; None if it is."""
        try:
            value = read(text)
        except ValueError as error:
            return f"no JSON: {error}"
        return self.why_not_value(value)

    def why_not_value(self, value: Any) -> str | None:
        """Why a value that ``read`` gave is not valid; None if it is."""
        try:
            error = next(self.validator.iter_errors(value), None)
        except BaseException as raised:  # the resolver's library panics, outside of Exception, where the stack ends
            if type(raised).__name__ == "PanicException":
                raise RecursionError("references without end") from None
            raise
        return None if error is None else f"{error.json_path}: {error.message[:300]}"

    def accepts(self, text: str) -> bool:
        """Whether a text is valid JSON under the schema."""
        return self.why_not(text) is None

    def holds(self, value: Any) -> bool:
        """Whether a value of plain Python is valid."""
        return self.accepts(json.dumps(value, ensure_ascii=False))
