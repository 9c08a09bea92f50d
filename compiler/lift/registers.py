"""Give tables registers: the tests of objects whose members stand in any order, and the tokens that these take out.

Takes tables that read a superset of the texts: members may come again, required ones may be missing; the states behind
keys are marked with their member (../pushdown/members.py). Gives the tables that are exact.

Leaves out   the tests (register_rules.py), the tokens (check_lists.py); their meaning: ../../runtime/reference.py.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.tables import FIELDS, NEVER, Tables, without_close
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.selection.shortest_paths import signs_of

from ..budget import Budget
from ..pushdown.member_marks import MembersClash
from ..schema.keywords import ARRAYS
from ..terminals.offsets import offsets
from .check_lists import CheckLists, reads_items_at_once, reads_keys_at_once
from .member_ways import Members, has_members
from .register_rules import Frames, Rules, put_rules


def with_registers(tables: Tables, vocab: Vocab, budget: Budget) -> Tables:
    """The tables with rules, check lists and way lists of registers.

    Raises:
        MembersClash: the members of some object cannot be kept in a register.
    """
    if not has_members(tables):
        return tables
    if reads_keys_at_once(vocab):
        raise MembersClash
    frames = Frames(tables, budget)
    if frames.has_arrays and reads_items_at_once(vocab):
        raise MembersClash([ARRAYS])
    members = Members.of(tables, frames, signs_of(tables, vocab), budget)
    known = _settle(members, tables)
    rules = Rules(tables.states)
    for one in members.ways:
        budget.check("")
        put_rules(frames, one.keys, one.cost, rules)
    tables = tables.but(**_ways(members, tables.states, rules)) if known else _without_close(tables)
    mark = tables.mark.copy()
    mark[:, 4] = np.maximum(mark[:, 4], 0)  # what ends ask for is in the rules now
    tables = tables.but(mark=mark)
    return CheckLists(tables, vocab, frames, rules, budget).tables()  # which has the tests of ways, too


def _settle(members: Members, t: Tables) -> bool:
    """Work out what closing takes in all objects, from the bounds of states; False where it is not known of some."""
    if t.knows_no_close:
        return False
    count = t.cells_of("close_break")
    place = np.repeat(t.state_close - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    first = np.cumsum(count) - count
    bound = np.maximum.reduceat(t.close_bound[place], first)
    other = np.minimum.reduceat(t.close_token[place].min(axis=1), first) >= 0
    members.settle(bound)
    return max([*(one.due for one in members.ways), *members.bounds(bound, other).values()]) < NEVER


def _ways(members: Members, states: int, rules: Rules) -> dict[str, np.ndarray]:
    """The arrays of way lists."""
    number: dict[tuple[tuple[int, int], ...], int] = {(): 0}
    of_state = np.zeros(states, np.int32)
    for one in members.ways:
        for q, found in one.lists.items():
            rows = tuple((token, rules.test(test)) for token, test in found)
            of_state[q] = number.setdefault(rows, len(number))
    return {
        "state_way": of_state,
        "way_offset": offsets(map(len, number), np.int32),
        "way": np.array([row for rows in number for row in rows], np.int32).reshape(-1, 2),
    }


def _without_close(t: Tables) -> Tables:
    """The tables without ways to close, which may leave required members out; what is forced stays forced."""
    made = without_close({field: getattr(t, field) for field in FIELDS})
    return made.but(state_forced=t.state_forced, forced_offset=t.forced_offset, forced_tokens=t.forced_tokens)
