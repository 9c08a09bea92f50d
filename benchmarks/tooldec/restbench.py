"""RestBench TMDB (Song et al. 2023, arXiv 2306.06624): is the path of API calls right, with documentation and without?

    documented        every operation of the API in the prompt, then as the model writes
    free              no documentation, as the model writes
    bundle            no documentation, each call under the protocol restgpt
    documented bundle both

The prompt has RestGPT's form, ``API calling 1: GET /search/person to …``. Each call is compared with the annotated
solution: where it is the right operation the next one is due (``API response: done``), else the query ends. No service
is called. A path is right if all its operations are. A call fails if it is no operation of the API.

Leaves out   values of parameters, which the annotation leaves out too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Matcher

from .decode import Model, Row, decode

ARMS = ("documented", "free", "bundle", "documented bundle")
CALL_TOKENS = 40
SHOTS = """User query: what are the keywords of the movie Alien
API calling 1: GET /search/movie?query=Alien to find the movie
API response: done
API calling 2: GET /movie/348/keywords to get its keywords

User query: which tv shows are popular
API calling 1: GET /tv/popular to get the popular tv shows

"""


class Operations:
    """The operations of the API, each by "METHOD /path"."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.lines, self._patterns = [], []
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if method not in ("get", "post", "put", "delete"):
                    continue
                name = f"{method.upper()} {path}"
                about = operation.get("description") or operation.get("summary") or ""
                asked = [one["name"] for one in operation.get("parameters", []) if one.get("in") == "query"]
                also = f" Parameters: {', '.join(asked)}." if asked else ""
                self.lines.append(f"{name}: {about.split('. ')[0].strip().rstrip('.')}.{also}")
                route = re.sub(r"\\\{[^/]*?\\\}", "[^/?]+", re.escape(path))
                self._patterns.append((name, path.count("{"), re.compile(rf"{method.upper()} {route}(?:\?\S*)?")))

    def called(self, line: str) -> str:
        """The operation that a line calls; empty for none. One without parameters goes before one with some."""
        request = re.split(r" to |\n| \{", line.lstrip() + "\n")[0].strip()
        found = [(holes, name) for name, holes, pattern in self._patterns if pattern.fullmatch(request)]
        return min(found)[1] if found else ""


class Query(Row):
    """One query under one arm.

    Attributes:
        calls: the operations that were called, an empty one where it was none.
    """

    def __init__(
        self, model: Model, query: str, solution: list[str], operations: Operations, bundle: Bundle | None
    ) -> None:
        super().__init__(model, f"User query: {query}\nAPI calling 1:" + (" " if bundle else ""), budget=400)
        self.solution, self.operations, self.bundle = solution, operations, bundle
        self.calls: list[str] = []
        self._open()

    def _open(self) -> None:
        self.at, self.begin = len(self.ids) + len(self.pending), self.tokens
        self.matcher = None if self.bundle is None else Matcher(self.bundle, "required/one", CALL_TOKENS)

    def look(self) -> None:
        line = self.model.decode(self.ids[self.at :])
        if " to " in line or "\n" in line or self.tokens - self.begin >= CALL_TOKENS:
            self.end()

    def end(self) -> None:
        self.calls.append(self.operations.called(self.model.decode(self.ids[self.at :])))
        number = len(self.calls)
        if self.calls != self.solution[:number] or number == len(self.solution):
            self.is_done = True
            return
        self.insert(f"\nAPI response: done\nAPI calling {number + 1}:" + (" " if self.bundle else ""))
        self._open()


def measure(model: Model, data: Path, which: str, arm: str, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Records of some queries under one arm."""
    document = json.loads((data.parent / "openapi" / "tmdb_oas.json").read_text(encoding="utf-8"))
    queries = json.loads((data / "restbench" / f"{which}.json").read_text(encoding="utf-8"))
    operations = Operations(document)
    bundle = None
    if "bundle" in arm:
        bundle = compile_tools(document, model.folder, options=Options(protocol="restgpt", named=False)).bundle
    head = "Plan calls of a movie database's API for a query, one at a time.\n\n"
    if "documented" in arm:
        head += "Operations:\n" + "\n".join(operations.lines) + "\n\n"
    head += SHOTS
    number_of = {}
    rows = []
    for n in ids:
        rows.append(Query(model, queries[n]["query"], queries[n]["solution"], operations, bundle))
        number_of[rows[-1]] = n
    for row in decode(model, head, rows):
        yield {
            "id": number_of[row], "right": row.calls == row.solution, "first": row.calls[:1] == row.solution[:1],
            "calls": len(row.calls), "failed": ["name"] * row.calls.count(""), "tokens": row.tokens,
            "prompt": len(model.encode(head)), "seconds": round(row.seconds, 3), "text": row.text,
        }  # fmt: skip
