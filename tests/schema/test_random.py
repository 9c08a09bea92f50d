"""Random schemas and values: the emitted language against the judge, in three layouts.

A valid object counts as accepted if some order of its keys is, in every layout. Texts in other spellings (keys that
stand twice, numbers with exponents) are held to one side only: what is accepted has to be valid.
"""

from __future__ import annotations

import itertools
import json
import os
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolc.compiler.errors import BudgetError, SchemaError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import SchemaOptions, schema_to_lark

from .judge import Judge
from .random_schemas import DRAFTS, older, schemas, values
from .recogniser import Recogniser

EXAMPLES = 50_000 if os.environ.get("TOOLC_HYPOTHESIS_PROFILE") == "fuzz" else 300  # `make fuzz` runs more
LAYOUTS = ((",", ":", ""), (", ", ": ", ""), (",", ": ", "\n "))


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
    elif isinstance(value, str):
        out += [value[:-1], value + "a", value + "0"]
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        out += [value + 1, -value]
    return out


def spell(value: Any, layout: tuple[str, str, str], twice: bool = False) -> str:
    """JSON text; with ``twice`` the first member of the outermost object stands at the end once more."""
    comma, colon, gap = layout
    if isinstance(value, dict):
        members = [f"{json.dumps(key, ensure_ascii=False)}{colon}{spell(item, layout)}" for key, item in value.items()]
        return "{" + gap + f"{comma}{gap}".join(members + members[:twice]) + gap + "}"
    if isinstance(value, list):
        return "[" + gap + f"{comma}{gap}".join(spell(item, layout) for item in value) + gap + "]"
    if isinstance(value, (float, Decimal)):
        text = format(value if isinstance(value, Decimal) else Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return json.dumps(value, ensure_ascii=False)


def other_spellings(value: Any) -> list[str]:
    """Texts of the value that the declared restrictions may leave out."""
    if isinstance(value, dict) and value:
        return [spell(value, LAYOUTS[0], twice=True)]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = Decimal(repr(value))
        return [
            f"{number}e0",
            f"{number.scaleb(3):f}E-3",
            f"{number:f}.0" if isinstance(value, int) else f"{number:f}0",
        ]
    if isinstance(value, str):
        return ['"' + "".join(f"\\u{ord(char):04x}" for char in value) + '"'] if value.isascii() else []
    return []


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, schemas, schemas, st.sampled_from([2020, 2020, *DRAFTS]), st.lists(values, min_size=4, max_size=4))
@example({"unevaluatedProperties": {}, "allOf": [{"dependencies": {"b": []}}]}, False, False, 2020, [{"b": None}])
def test_language(schema: Any, x: Any, y: Any, draft: int, instances: list[Any]) -> None:
    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[draft], **older({**schema, "$defs": {"x": x, "y": y}}, draft)}
    check(schema, instances)


def check(schema: Any, instances: list[Any]) -> bool:
    """Compare on the instances, their neighbours and what the schema itself holds; False if it is refused."""
    try:
        text, _ = schema_to_lark(schema, SchemaOptions(whitespace="flexible"))
    except (UnsupportedError, BudgetError):
        return False
    except UnsatisfiableError:
        text = ""
    except SchemaError as error:
        if "refers to itself" in str(error):
            return False
        raise
    ours = Recogniser(text) if text else None
    judge = Judge(schema)
    for value in [one for instance in [*instances, *_held(schema)] for one in near(instance, instances[0])[:9]]:
        try:
            valid = judge.accepts(spell(value, LAYOUTS[0]))
        except RecursionError:  # references without end below unevaluated keywords
            continue
        shapes = orders(value)[:2000]
        for layout in LAYOUTS:
            fitting = [one for one in shapes if ours is not None and ours.accepts(spell(one, layout))]
            assert bool(fitting) == valid, (schema, spell(value, layout), valid, text)
            shapes = fitting or shapes[:24]  # the layout does not change what orders there are
        for other in other_spellings(value):
            if ours is not None and ours.accepts(other):
                assert judge.accepts(other), (schema, other, judge.why_not(other), text)
    return True


def _held(schema: Any) -> list[Any]:
    """Values of enum and const inside a schema."""
    out: list[Any] = []
    if isinstance(schema, dict):
        for key, inner in schema.items():
            out += inner if key == "enum" and isinstance(inner, list) else [inner] if key == "const" else _held(inner)
    elif isinstance(schema, list):
        for inner in schema:
            out += _held(inner)
    return out[:6]
