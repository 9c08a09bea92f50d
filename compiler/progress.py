"""Tell of a long compile, tool by tool and part by part, on the logger ``toolc.compiler.progress``.

Leaves out   the stages, which `compile_tools` tells its caller; how either is shown (commands/terminal.py).
Invariants   nothing is written where nobody listens: the level of messages is INFO.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger(__name__)


def tell(stage: str, number: int, count: int, what: str) -> None:
    """Say what is compiled now.

    Args:
        stage: as `compile_tools` names it.
        number: of it, from 1 on.
        count: how many there are; of one alone nothing is said.
        what: a tool or a place.
    """
    if count > 1:
        LOG.info("%s: %s (%d of %d)", stage, what, number, count)
