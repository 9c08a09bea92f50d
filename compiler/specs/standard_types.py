r"""Say which JSON stands for a value of a type of the standard library: dates, durations, UUID, Decimal, Path …

The language of a type is what pydantic reads as this type, and holds what pydantic writes: a datetime may have no
offset, a duration may have a fraction. So these are no formats of JSON Schema, which differ: they are patterns.

Leaves out   containers, classes and unions (callables.py), what pydantic says of models (models.py).
Invariants   what a pattern matches, pydantic and `toolc.runtime.calls.typed` read as the type. A text that pydantic
             reads, but never writes, may be missing: "2024-01-01 10:00", a datetime as a number, "1 day".
Source       pydantic 2: pydantic_core's dates are those of speedate. tests/specs/test_types.py asks pydantic.
"""

from __future__ import annotations

import datetime
import ipaddress
import math
import pathlib
import re
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..errors import SpecError


def text(pattern: str) -> dict[str, Any]:
    """The schema of the strings that match a pattern as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
# A year is 365 days. Numbers are so small that no duration is longer than a timedelta can be.
_CLOCK = (
    r"T(?:[0-9]{1,5}H(?:[0-9]{1,5}M)?(?:[0-9]{1,5}(?:\.[0-9]{1,6})?S)?"
    r"|[0-9]{1,5}M(?:[0-9]{1,5}(?:\.[0-9]{1,6})?S)?|[0-9]{1,5}(?:\.[0-9]{1,6})?S)"
)
_YEARS = "(?:[0-9]{1,6}|1[0-9]{6}|2[0-6][0-9]{5})Y"
_DAYS = f"(?:{_YEARS}(?:[0-9]{{1,7}}D)?|[0-9]{{1,8}}D|[0-9]{{1,7}}W)"
_HEX = "[0-9A-Fa-f]"
_DECIMAL_TEXT = r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?(?:[Ee][+-]?[0-9]{1,3})?"

_MOST = 10**64
"""A number that is a Decimal is no larger: pydantic refuses one that is too large for a float."""
DECIMAL: dict[str, Any] = {"anyOf": [{"type": "number", "minimum": -_MOST, "maximum": _MOST}, text(_DECIMAL_TEXT)]}

_SCHEMAS: dict[Any, dict[str, Any]] = {
    datetime.datetime: text(f"{_DATE}T{_TIME}{_OFFSET}?"),
    datetime.date: text(_DATE),
    datetime.time: text(f"{_TIME}{_OFFSET}?"),
    datetime.timedelta: text(f"-?P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK})"),
    uuid.UUID: {"type": "string", "format": "uuid"},
    Decimal: DECIMAL,
    bytes: {"type": "string"},
    ipaddress.IPv4Address: {"type": "string", "format": "ipv4"},
    ipaddress.IPv6Address: {"type": "string", "format": "ipv6"},
    re.Pattern: {"type": "string", "format": "regex"},
    **{
        kind: {"type": "string"}
        for kind in (
            pathlib.Path, pathlib.PurePath, pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
        )
    },
}  # fmt: skip
_OFFSETS = {"aware": _OFFSET, "naive": ""}


def standard_schema(kind: Any) -> dict[str, Any] | None:
    """The schema of a type of this module; None of others."""
    try:
        found = _SCHEMAS.get(kind)
    except TypeError:  # metadata inside of an annotation has no hash
        return None
    return None if found is None else dict(found)


def datetime_schema(offset: str | None = None) -> dict[str, Any]:
    """The schema of a datetime that must have an offset ("aware"), or must not ("naive")."""
    if offset not in _OFFSETS:
        return dict(_SCHEMAS[datetime.datetime])
    return text(f"{_DATE}T{_TIME}{_OFFSETS[offset]}")


def uuid_schema(version: int | None) -> dict[str, Any]:
    """The schema of a UUID of a version."""
    if version is None:
        return dict(_SCHEMAS[uuid.UUID])
    return text(f"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}")


def decimal_schema(keywords: Mapping[str, Any], digits: int | None, places: int | None, place: str) -> dict[str, Any]:
    """The schema of a Decimal with limits.

    A number with bounds is written as a number only, since no pattern says bounds; one with at most so many digits in
    all as text only, since no keyword of numbers says that.

    Args:
        keywords: of numbers, as minimum.
        digits: most digits (``max_digits``).
        places: most digits after the point (``decimal_places``).
        place: where errors are.
    """
    if digits is None and places is None:
        return _bounded({"type": "number", **keywords}) if keywords else dict(DECIMAL)
    if digits is not None and places is None:
        if keywords:
            raise SpecError(
                "max_digits beside a bound has no JSON Schema",
                place=place,
                found=f"max_digits={digits}, {', '.join(keywords)}",
                hint="say decimal_places, too",
            )
        forms = [f"[0-9]{{1,{digits}}}", rf"0\.[0-9]{{{digits}}}"]
        forms += [f"[0-9]{{1,{digits - k}}}\\.[0-9]{{{k}}}" for k in range(1, digits)]
        return text(f"-?(?:{'|'.join(forms)})")
    assert places is not None
    step = Decimal(1).scaleb(-places)
    number = {"type": "number", **keywords}
    number = {"allOf": [number, {"multipleOf": step}]} if "multipleOf" in keywords else number | {"multipleOf": step}
    whole = None if digits is None else max(digits - places, 0)
    if whole is not None:
        limit = 10**whole
        number = {"allOf": [number, {"exclusiveMinimum": -limit, "exclusiveMaximum": limit}]}
    else:
        number = _bounded(number)
    if keywords:
        return number
    head = "[0-9]{1,100}" if whole is None else f"[0-9]{{1,{whole}}}" if whole else "0"
    tail = rf"(?:\.[0-9]{{1,{places}}})?" if places else ""
    return {"anyOf": [number, text(f"-?{head}{tail}")]}


def _bounded(number: dict[str, Any]) -> dict[str, Any]:
    """Numbers that are no larger than _MOST, or ten times a bound that is stated."""
    stated = [
        abs(number[key]) for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if key in number
    ]
    most = max([_MOST, *(10 * math.ceil(one) for one in stated)])
    return {"allOf": [number, {"minimum": -most, "maximum": most}]}


def key_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the keys of an object are that stand for values of a schema; None where no key does.

    pydantic reads a key as it reads a string.
    """
    kind = schema.get("type")
    if "$ref" in schema or kind == "string":
        return dict(schema)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return dict(schema) if all(isinstance(value, str) for value in values) else None
    if kind == "integer" and not schema.keys() - {"type", "title", "description"}:
        return text("0|-?[1-9][0-9]{0,17}")
    if not schema.keys() - {"title", "description"}:
        return {}
    return None


_LABEL = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
_HOST = rf"(?:(?:{_LABEL}\.)*[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)"
_PORT = "(?::(?:[0-9]{1,4}|[1-5][0-9]{4}))?"
_CHARS = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
_REST = rf"(?:/{_CHARS})?(?:\?{_CHARS})?(?:#{_CHARS})?"


def url_schema(schemes: list[str] | None, most: int | None) -> dict[str, Any]:
    """The schema of an address with a host of ASCII and no user, as pydantic's parser takes it whatever the scheme."""
    head = "|".join(map(re.escape, schemes)) if schemes else "https?|wss?|ftp|[a-z][a-z0-9]{0,15}"
    plain = text(rf"(?:{head})://{_HOST}{_PORT}{_REST}")
    return plain | ({} if most is None else {"maxLength": most})
