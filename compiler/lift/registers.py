"""Give tables registers: the tests of objects whose members stand in any order, and the tokens that these take out.

Takes tables that read a superset of the texts: members may come again, required ones may be missing; the states behind
keys are marked with their member (../pushdown/members.py). Gives the tables that are exact.

Leaves out   the tests (register_rules.py), the tokens (check_lists.py); their meaning: ../../runtime/reference.py.
"""

from __future__ import annotations

from toolc.runtime.format.tables import FIELDS, Tables, without_close
from toolc.runtime.format.vocab import Vocab

from ..budget import Budget
from ..pushdown.members import MembersClash
from .check_lists import CheckLists, reads_members_at_once
from .register_rules import Frames, Rules, put_rules


def has_members(tables: Tables) -> bool:
    """Whether some state is marked with a member."""
    return bool(tables.mark[tables.state_mark, 4].any())


def with_registers(tables: Tables, vocab: Vocab, budget: Budget) -> Tables:
    """The tables with rules and check lists of registers.

    Raises:
        MembersClash: the members of some object cannot be kept in a register.
    """
    if not has_members(tables):
        return tables
    if reads_members_at_once(vocab):
        raise MembersClash
    frames = Frames(tables, budget)
    rules = Rules(tables.states)
    for states in frames.with_members:
        budget.check("")
        put_rules(frames, states, rules)
    return _without_close(CheckLists(tables, vocab, frames, rules, budget).tables())


def _without_close(t: Tables) -> Tables:
    """The tables without ways to close, which may leave required members out; what is forced stays forced."""
    made = without_close({field: getattr(t, field) for field in FIELDS})
    return made.but(state_forced=t.state_forced, forced_offset=t.forced_offset, forced_tokens=t.forced_tokens)
