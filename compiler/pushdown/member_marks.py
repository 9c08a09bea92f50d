"""Say what the marks of objects whose members stand in any order mean, and what of them stays in the marks of states.

    behind a key                       the member: one more than twice its bit, and one more if it is required
    before the closing brace, in a union  what the end asks for: -1 - bits
    where none of a union may end      `WAITS`: each alternative requires a member that cannot have been read yet

The items of an array of different strings are marked so, too: a "key" is then a whole item.

Leaves out   where the marks are put (../ir/nodes.py), and taken away (members.py, union_ends.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARK = re.compile(r"MEMBER_(\d+)_(REQUIRED|OPTIONAL)")
_END = re.compile(r"MEMBERS_(\d+)")


class MembersClash(Exception):
    """No register can keep the members of some object: the spec is written anew without registers for it.

    Attributes:
        places: JSON pointers of the objects, where they are known; none: it may be any.
    """

    def __init__(self, places: Iterable[str] = ()) -> None:
        super().__init__("no register can keep the members of an object")
        self.places = frozenset(places)

    @staticmethod
    def of_all(clashes: Iterable[MembersClash]) -> MembersClash:
        """One of several, whose places are known if those of each are."""
        places = [clash.places for clash in clashes]
        return MembersClash(frozenset().union(*places) if all(places) else ())

    def __reduce__(self) -> tuple[type[MembersClash], tuple[frozenset[str]]]:
        return MembersClash, (self.places,)


def member_of(special: str) -> int:
    """What a mark stands for, by the name of its symbol: a member, or what an end asks for; 0 for other symbols."""
    if found := _MARK.fullmatch(special):
        return 1 + 2 * int(found[1]) + (found[2] == "REQUIRED")
    found = _END.fullmatch(special)
    return -1 - int(found[1]) if found else 0


def is_required(member: int) -> bool:
    """Whether an object needs a member."""
    return member > 0 and member % 2 == 0


def bit_of(member: int) -> int:
    """The bit of a member."""
    return (member - 1) >> 1


def asked_of(member: int) -> int:
    """The bits that an end asks for."""
    return -1 - member


WAITS = -1 - (1 << 30)
"""Of a state of a union where no alternative can end, since each requires a member that no way to it has read."""
