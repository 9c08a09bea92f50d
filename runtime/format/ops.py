"""Define the ops of the transition table: one int32 says what a state does on a symbol.

The low ``KIND_BITS`` bits of an op are its kind, the others a number:

    kind 0 to 3     go to state `number`, and change the counter: keep it, add one, set it to 0, set it to 1
    kind PUSH       push: row `number` of the table ``push``; the callee's counter is 0
    kind POP        pop, after which the frame below goes on as return set `number` says
    op 0            dead: state 0, counter kept

A *return* (what the table ``return`` holds for a stack symbol and a return set) is a state and a counter action:
state << ACTION_BITS | action.

Leaves out   the other tables: see tables.py. Stepping: reference.py, and the backends.
Invariants   kernels take these constants from here; numbers like 7 and 3 stand in no other place.
"""

from __future__ import annotations

from typing import Any

KEEP, INCREMENT, ZERO, ONE = range(4)  # counter actions, and the kinds of the ops that go to a state
PUSH, POP = 4, 5
KIND_BITS, KIND_MASK = 3, 7
ACTION_BITS, ACTION_MASK = 2, 3
DEAD, FINISHED = 0, 1  # the first two states: no text goes on; the end of turn was read
END_OF_TURN = 256  # the first symbol that is no byte


def kind_of(op: Any) -> Any:
    """The kind of an op, or of each in an array."""
    return op & KIND_MASK


def number_of(op: Any) -> Any:
    """The state, the row of ``push`` or the return set of an op, or of each in an array."""
    return op >> KIND_BITS


def op_of(kind: Any, number: Any) -> Any:
    """The op of a kind and a number, or of two arrays."""
    return number << KIND_BITS | kind


def return_of(state: Any, action: Any) -> Any:
    """The return to a state with an action on the restored counter, or of two arrays."""
    return state << ACTION_BITS | action


def state_of_return(value: Any) -> Any:
    """The state of a return, or of each in an array."""
    return value >> ACTION_BITS


def action_of_return(value: Any) -> Any:
    """The counter action of a return, or of each in an array."""
    return value & ACTION_MASK
