"""List the texts of a regular expression that has few of them.

Leaves out   texts of JSON Schema's ``enum``, which never become expressions (../schema).
Invariants   each text comes once, in the order of the expression; where assertions decide there is no list.
"""

from __future__ import annotations

from .nodes import Chars, Concat, Regex, Repeat, Union, literal


def few_texts(regex: Regex, most: int) -> list[Regex] | None:
    """The texts that an expression matches, each as an expression.

    None where it may have more than ``most``, or asserts something about what is around it. While they are counted, a
    text that comes twice counts twice.
    """
    found = _texts(regex, most)
    return None if found is None else [literal(text) for text in found]


def _texts(regex: Regex, most: int) -> list[str] | None:
    if isinstance(regex, Chars):
        if sum(high - low + 1 for low, high in regex.ranges) > most:
            return None
        return [chr(code) for low, high in regex.ranges for code in range(low, high + 1)]
    if isinstance(regex, Concat):
        found = [""]
        for item in regex.items:
            more = _texts(item, most)
            if more is None or len(found) * len(more) > most:
                return None
            found = [text + further for text in found for further in more]
        return list(dict.fromkeys(found))
    if isinstance(regex, Union):
        union: dict[str, None] = {}
        for option in regex.options:
            more = _texts(option, most)
            if more is None:
                return None
            union.update(dict.fromkeys(more))
        return list(union) if len(union) <= most else None
    if isinstance(regex, Repeat) and regex.high is not None and regex.high <= most:
        one = _texts(regex.item, most)
        if one is None:
            return None
        repeated: dict[str, None] = {}
        some = [""]
        for count in range(regex.high + 1):
            if count >= regex.low:
                repeated.update(dict.fromkeys(some))
            if count < regex.high:
                if len(some) * max(1, len(one)) > most:
                    return None
                some = list(dict.fromkeys(text + further for text in some for further in one))
        return list(repeated) if len(repeated) <= most else None
    return None
