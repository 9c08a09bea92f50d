"""Sets of code points as sorted ranges, and the Unicode tables that regular expressions name.

Leaves out   regular expressions (parser.py), UTF-8 (../terminals/utf8.py).
Invariants   a ``Ranges`` value is sorted, disjoint, never adjacent except across the surrogates, inclusive at both
             ends, inside 0..0x10FFFF, and without surrogates, so equal sets are equal values.
             Nothing is computed at import; tables are built when first asked for and kept.
Source       General categories and scripts of Unicode 17.0 (categories.py, scripts.py). Python's own classes and case,
             which the grammars of Lark mean, are those of the Python that compiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .categories import RUNS
from .scripts import PROPERTIES, PROPERTY_ALIASES, SCRIPT_ALIASES, SCRIPTS

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
EMPTY: Ranges = ()
ALL: Ranges = ((0, 0xD7FF), (0xE000, LAST))

ASCII_DIGIT: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
ECMA_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
ECMA_LINE_END: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))

_CATEGORY_NAMES = {
    "letter": "L", "cased_letter": "LC", "uppercase_letter": "Lu", "lowercase_letter": "Ll", "titlecase_letter": "Lt",
    "modifier_letter": "Lm", "other_letter": "Lo", "mark": "M", "combining_mark": "M", "nonspacing_mark": "Mn",
    "spacing_mark": "Mc", "enclosing_mark": "Me", "number": "N", "decimal_number": "Nd", "digit": "Nd",
    "letter_number": "Nl", "other_number": "No", "punctuation": "P", "punct": "P", "connector_punctuation": "Pc",
    "dash_punctuation": "Pd", "open_punctuation": "Ps", "close_punctuation": "Pe", "initial_punctuation": "Pi",
    "final_punctuation": "Pf", "other_punctuation": "Po", "symbol": "S", "math_symbol": "Sm", "currency_symbol": "Sc",
    "modifier_symbol": "Sk", "other_symbol": "So", "separator": "Z", "space_separator": "Zs", "line_separator": "Zl",
    "paragraph_separator": "Zp", "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "surrogate": "Cs",
    "private_use": "Co", "unassigned": "Cn",
}  # fmt: skip


def normal(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Any ranges, overlapping or not, as a ``Ranges`` value."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    out: list[tuple[int, int]] = []
    for low, high in merged:
        if high < 0xD800 or low > 0xDFFF:
            out.append((low, high))
            continue
        if low < 0xD800:
            out.append((low, 0xD7FF))
        if high > 0xDFFF:
            out.append((0xE000, high))
    return tuple(out)


def single(code: int) -> Ranges:
    """The set of one code point (empty for a surrogate)."""
    return () if 0xD800 <= code <= 0xDFFF else ((code, code),)


def union(*sets: Ranges) -> Ranges:
    """Code points in any of the sets."""
    return normal(one for ranges in sets for one in ranges)


def complement(ranges: Ranges) -> Ranges:
    """Code points, surrogates aside, that are not in the set."""
    out: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            out.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        out.append((start, LAST))
    return normal(out)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Code points in both sets."""
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def difference(left: Ranges, right: Ranges) -> Ranges:
    """Code points in the first set only."""
    return intersection(left, complement(right))


def contains(ranges: Ranges, code: int) -> bool:
    """Whether a code point is in the set."""
    return any(low <= code <= high for low, high in ranges)


@lru_cache(maxsize=8)
def _matching(pattern: str) -> Ranges:
    """What Python's ``re`` matches of one of its own classes. Planes 4 to 13 hold nothing assigned."""
    out: list[tuple[int, int]] = []
    for start, stop in ((0, 0x40000), (0xE0000, 0x110000)):
        text = "".join(map(chr, range(start, stop)))
        out.extend((start + m.start(), start + m.end() - 1) for m in re.finditer(pattern + "+", text))
    return normal(out)


def python_digit() -> Ranges:
    r"""``\d`` of a Python str pattern."""
    return _matching(r"\d")


def python_word() -> Ranges:
    r"""``\w`` of a Python str pattern."""
    return _matching(r"\w")


def python_space() -> Ranges:
    r"""``\s`` of a Python str pattern."""
    return _matching(r"\s")


@lru_cache(maxsize=1)
def _categories() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for name, count in re.findall(r"([A-Z][a-z])(\d*)", RUNS):
        following = start + int(count or 1)
        found.setdefault(name, []).append((start, following - 1))
        start = following
    return {name: normal(ranges) for name, ranges in found.items()}


@lru_cache(maxsize=256)
def named_property(name: str, value: str | None) -> Ranges | None:
    r"""The set of ``\p{name}`` or ``\p{name=value}``, None if it is not one we know exactly."""
    if value is None:
        if name in ("Any", "ASCII", "Assigned", "ASCII_Hex_Digit", "AHex"):
            if name == "Assigned":
                return complement(_categories()["Cn"])
            return {"Any": ALL, "ASCII": ((0, 0x7F),)}.get(name, ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
        text = PROPERTIES.get(PROPERTY_ALIASES.get(name, name))
        return _category(name) if text is None else _listed(text)
    if name in ("General_Category", "gc"):
        return _category(value)
    if name in ("Script", "sc"):
        text = SCRIPTS.get(SCRIPT_ALIASES.get(value, value))
        return None if text is None else _listed(text)
    return None


def _listed(text: str) -> Ranges:
    """The set that a text of scripts.py holds."""
    found: list[tuple[int, int]] = []
    start = 0
    for part in text.split():
        gap, _, more = part.partition(".")
        start += int(gap, 36)
        end = start + (int(more, 36) if more else 0)
        found.append((start, end))
        start = end + 1
    return normal(found)


def _category(name: str) -> Ranges | None:
    short = _CATEGORY_NAMES.get(name.lower(), name) if name == name.capitalize() or "_" in name else name
    table = _categories()
    if short == "LC":
        return union(table["Lu"], table["Ll"], table["Lt"])
    if short == "Cs":
        return EMPTY
    if short in table:
        return table[short]
    if len(short) == 1 and any(key[0] == short for key in table):
        return union(*(ranges for key, ranges in sorted(table.items()) if key[0] == short))
    return None


@lru_cache(maxsize=1)
def _case_orbits() -> dict[int, tuple[int, ...]]:
    """Code point -> all code points that ``re.IGNORECASE`` takes for the same, for those with company."""
    orbits: dict[str, list[int]] = {}
    for code in range(0x20000):
        one = chr(code)
        lower = one.lower()[0]
        if lower != one or one.upper() != one:
            orbits.setdefault(lower.upper(), []).append(code)
    out: dict[int, tuple[int, ...]] = {}
    for members in orbits.values():
        if len(members) > 1:
            for code in members:
                out[code] = tuple(members)
    return out


_SIMPLE_FOLDINGS = {0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB05: 0xFB06}
"""Code points that fold to another one alone, of which Python only knows that they fold to several."""


@lru_cache(maxsize=1)
def _folding_orbits() -> dict[int, tuple[int, ...]]:
    """Code point -> all code points with the same simple case folding, for those with company."""
    orbits: dict[int, list[int]] = {}
    for code in range(0x20000):
        one = chr(code)
        folded = one.casefold()
        folded = folded if len(folded) == 1 else one.lower()  # what folds to several folds alone as in lower case
        orbits.setdefault(_SIMPLE_FOLDINGS.get(code, ord(folded) if len(folded) == 1 else code), []).append(code)
    return {code: tuple(members) for members in orbits.values() if len(members) > 1 for code in members}


@lru_cache(maxsize=4096)
def fold_case(ranges: Ranges) -> Ranges:
    """The set closed under simple case folding, by which ECMA-262 compares with the flags i and u."""
    return _closed(ranges, _folding_orbits())


@lru_cache(maxsize=4096)
def ignore_case(ranges: Ranges) -> Ranges:
    """The set closed under the case rules of ``re.IGNORECASE`` for str patterns."""
    return _closed(ranges, _case_orbits())


def _closed(ranges: Ranges, orbits: dict[int, tuple[int, ...]]) -> Ranges:
    """The set with all that is in an orbit of one of its members."""
    if sum(high - low + 1 for low, high in ranges) < len(orbits):
        hit = (code for low, high in ranges for code in range(low, high + 1) if code in orbits)
    else:
        hit = (code for code in orbits if contains(ranges, code))
    return union(ranges, normal((other, other) for code in hit for other in orbits[code]))
