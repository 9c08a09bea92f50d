"""Messages as tokens, so that a chat that comes back is the same tokens that were decoded.

Each message is encoded by itself, between delimiters. The text of a message never becomes a delimiter: what spells one
is cut in two first. An assistant's turn is found again by the ids of its calls; one that is not found is written anew.

Leaves out   the templates that models were trained with: give `render` of your own for those. Threads: `render` may run
             in one, while turns are remembered in another.
Limits       the text of calls that are written anew is searched for, in plain Python, at some 15 bytes a millisecond;
             so their bytes are bounded, one by one and together.
Invariants   render(messages) + turn + after(calls, outputs) is render(messages + assistant's message + tool messages).
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..calls.events import Call
from ..calls.reader import Reader
from ..calls.writer import write_calls
from .agent import Message, calls_of
from .errors import SpeculateError

if TYPE_CHECKING:
    from ..format.bundle import Bundle

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class Template:
    """The text around a message: `before` with the role in place of {role}, then the content, `end`, and `joint`."""

    before: str
    end: str
    joint: str = ""


BUILTIN = Template("<|{role}|>", "<|end|>")
CHATML = Template("<|im_start|>{role}\n", "<|im_end|>", "\n")


class Chat:
    """Renders messages.

    Args:
        bundle: in whose protocol calls are written.
        encode: text to tokens, delimiters as their tokens.
        template: of messages; found by the vocabulary's delimiters if None.
        remembered: tokens of assistant's turns that are kept to be found again.
        call_bytes: of one call that is written anew, at most: its name and arguments, UTF-8.
        history_bytes: of all such calls of one prompt.

    Attributes:
        most: tokens of a prompt; a service sets it to what its model takes.
    """

    most: int | None = None

    def __init__(
        self,
        bundle: Bundle,
        encode: Callable[[str], list[int]],
        template: Template | None = None,
        remembered: int = 1 << 20,
        call_bytes: int = 4 << 10,
        history_bytes: int = 64 << 10,
    ) -> None:
        self.encode = encode
        self.special = bundle.vocab.special
        self.start = Reader(bundle, "required" if "required" in bundle.entry else "start")
        if template is None:
            template = next((one for one in (CHATML, BUILTIN) if one.end in self.special), None)
        if template is None:
            raise SpeculateError(
                "no template of messages is known for this vocabulary",
                expected=f"a token {CHATML.end} or {BUILTIN.end}",
                hint="give a Template",
            )
        self.template = template
        self.remembered = remembered
        self.call_bytes, self.history_bytes = call_bytes, history_bytes
        self._turns: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()
        self._held = 0
        names = sorted(self.special, key=len, reverse=True)
        self._delimiter = re.compile("|".join(map(re.escape, names)))

    def plain(self, text: str) -> list[int]:
        """The tokens of a text in which nothing is a delimiter."""
        pieces, at = [], 0
        for found in self._delimiter.finditer(text):
            pieces += [text[at : found.start() + 1]]
            at = found.start() + 1
        return [token for piece in [*pieces, text[at:]] if piece for token in self.encode(piece)]

    def remember(self, user: str, calls: Sequence[Call], tokens: Sequence[int]) -> None:
        """Keep a turn, to be found by the id of its first call; the oldest go where there are too many."""
        if calls:
            self._turns[user, calls[0].id] = tuple(tokens)
            self._held += len(tokens)
        while self._held > self.remembered and self._turns:
            self._held -= len(self._turns.popitem(last=False)[1])

    def render(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), user: str = "") -> list[int]:
        """The prompt of the next assistant's turn; of one that has more tokens than `most`, only the beginning."""
        out = [] if not tools else self._message("system", "\n".join(json.dumps(one) for one in tools))
        room = self.history_bytes
        for n, message in enumerate(messages):
            if self.most is not None and len(out) > self.most:
                return out
            role = message.get("role")
            if role == "assistant":
                turn, room = self._turn(message, n, user, room)
                out += self._before("assistant") + turn + self._joint()
            elif role in ROLES:
                out += self._message(role, _text(message.get("content"), n))
            else:
                place = f"messages/{n}/role"
                raise SpeculateError("no such role", place=place, found=repr(role), expected=", ".join(ROLES))
        return out + self._before("assistant")

    def after(self, outputs: Sequence[str]) -> list[int]:
        """What follows a turn whose calls have these outputs, up to where the next one begins."""
        out = self._joint()
        for output in outputs:
            out += self._message("tool", output)
        return out + self._before("assistant")

    def _message(self, role: str, content: str) -> list[int]:
        return self._before(role) + self.plain(content) + self.encode(self.template.end) + self._joint()

    def _before(self, role: str) -> list[int]:
        return self.encode(self.template.before.replace("{role}", role))

    def _joint(self) -> list[int]:
        return self.encode(self.template.joint) if self.template.joint else []

    def _turn(self, message: Message, number: int, user: str, room: int) -> tuple[list[int], int]:
        """The tokens of an assistant's turn, and how much of the room for calls that are written anew is left."""
        calls, place = calls_of(message), f"messages/{number}/tool_calls"
        for n, call in enumerate(calls):
            if not isinstance(call.id, str):
                raise SpeculateError(
                    "the id of a call is no text",
                    place=f"{place}/{n}/id",
                    found=type(call.id).__name__,
                    expected="text",
                )
        if calls and (found := self._turns.get((user, calls[0].id))) is not None:
            return list(found), room
        out = self.plain(_text(message.get("content"), number))
        for n, call in enumerate(calls):
            size = sum(len(text.encode(errors="replace")) for text in (call.name, call.text))
            room -= size
            if size > self.call_bytes or room < 0:
                raise SpeculateError(
                    "a call that is not known here is too long to be written anew",
                    place=f"{place}/{n}",
                    found=f"{size} bytes",
                    expected=f"at most {self.call_bytes}, and {self.history_bytes} in all such calls of a chat",
                )
        if calls:
            out += self.written(calls, place)
        return out + self.encode(self.template.end), room

    def written(self, calls: Sequence[Call], place: str = "") -> list[int]:
        """The tokens of calls, as a model writes them; what their arguments hold is never a delimiter.

        Raises:
            SpeculateError: the bundle has no text for them.
        """
        found = write_calls(self.start, [(call.name, call.arguments) for call in calls])
        if found is None:
            wanted = ", ".join(f"{call.name}({call.json})" for call in calls)
            raise SpeculateError("calls that have no text under the bundle", place=place, found=wanted[:400])
        out: list[int] = []
        for piece in found.pieces:
            out += [self.special[piece]] if isinstance(piece, str) else self.plain(piece.decode())
        return out


def _text(content: Any, place: int) -> str:
    """The text of a content: a text, nothing, or a list of parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(one, dict) and one.get("type") == "text" for one in content):
        texts = [one.get("text") for one in content]
        if all(text is None or isinstance(text, str) for text in texts):
            return "".join(text or "" for text in texts)
    raise SpeculateError(
        "this content is no text", place=f"messages/{place}/content", found=type(content).__name__, expected="text"
    )
