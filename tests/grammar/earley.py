"""Read text by the rules of lr1.py letter by letter: the oracle for which letters may come next.

Leaves out   speed, trees.
Source       Earley 1970; Aycock and Horspool 2002 for rules that may be empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from .lr1 import Rules, firsts

Item = tuple[str, int, int, int]  # rule, alternative, place in it, where it began


class Chart:
    """The items after each letter of a text. A rule has productive alternatives only."""

    def __init__(self, rules: Rules, sets: tuple[frozenset[Item], ...] = ()) -> None:
        self.rules = rules
        self._empty = {name for name, first in firsts(rules).items() if "" in first}
        self._sets = sets or (self._closed(0, [("start", n, 0, 0) for n in range(len(rules["start"]))], ()),)

    def _closed(self, at: int, begin: Iterable[Item], before: tuple[frozenset[Item], ...]) -> frozenset[Item]:
        found = dict.fromkeys(begin)
        todo = list(found)
        for name, number, dot, origin in todo:
            option = self.rules[name][number]
            more: list[Item] = []
            if dot == len(option):
                sources = found if origin == at else before[origin]
                for other in list(sources):
                    rest = self.rules[other[0]][other[1]]
                    if other[2] < len(rest) and rest[other[2]] == name:
                        more.append((other[0], other[1], other[2] + 1, other[3]))
            elif option[dot] in self.rules:
                more += [(option[dot], n, 0, at) for n in range(len(self.rules[option[dot]]))]
                if option[dot] in self._empty:
                    more.append((name, number, dot + 1, origin))
            for item in more:
                if item not in found:
                    found[item] = None
                    todo.append(item)
        return frozenset(found)

    def after(self, letter: str) -> Chart | None:
        """The chart with one more letter; None where it cannot come."""
        rules, sets = self.rules, self._sets
        moved = [
            (name, number, dot + 1, origin)
            for name, number, dot, origin in sets[-1]
            if dot < len(rules[name][number]) and rules[name][number][dot] == letter
        ]
        return Chart(rules, (*sets, self._closed(len(sets), moved, sets))) if moved else None

    @property
    def is_whole(self) -> bool:
        """Whether the text may end."""
        return any(
            name == "start" and origin == 0 and dot == len(self.rules[name][number])
            for name, number, dot, origin in self._sets[-1]
        )
