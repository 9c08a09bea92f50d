"""Tell in which part of a call a text stands: where a mask takes probability away.

    start      before the first brace          number     inside of a number
    name       inside of the function's name   structure  between: brackets, signs, true, false, null, and the first
    key        inside of a key                            character of a key or value
    string     inside of another string        end        after the call

`blanks` is no place of its own: what is taken away in `start` or `structure` from tokens that begin with a blank.
"""

from __future__ import annotations

REGIONS = ("start", "name", "key", "string", "number", "structure", "blanks", "end")
BLANKS = b" \t\r\n"


class Place:
    """Where a text of JSON stands, fed byte by byte.

    Attributes:
        region: one of REGIONS but blanks.
    """

    def __init__(self) -> None:
        self.region = "start"
        self._open: list[bool] = []  # brackets, whether of an object
        self._key = False  # whether a string here is a key
        self._escaped = False
        self._last = b""  # the last key of the outermost object, or what is read of it

    def feed(self, text: bytes) -> None:
        """Read on."""
        for one in text:
            self._byte(bytes([one]))

    def _byte(self, one: bytes) -> None:
        if self.region in ("name", "key", "string"):
            if self._escaped:
                self._escaped = False
            elif one == b"\\":
                self._escaped = True
            elif one == b'"':
                self.region = "structure"
            elif self.region == "key" and len(self._open) == 1:
                self._last += one
        elif one in b"{[":
            self._open.append(one == b"{")
            self.region, self._key = "structure", one == b"{"
        elif one in b"}]":
            self._open = self._open[:-1]
            self.region = "structure" if self._open else "end"
            self._key = False
        elif one == b'"' and self._open:
            outermost = len(self._open) == 1
            if self._key:
                self.region, self._last = "key", b"" if outermost else self._last
            else:
                self.region = "name" if outermost and self._last == b"name" else "string"
        elif one in b",:":
            self.region, self._key = "structure", one == b"," and bool(self._open) and self._open[-1]
        elif one in b"-0123456789" and self.region == "structure":
            self.region = "number"
        elif one in BLANKS and self.region == "number":
            self.region = "structure"
