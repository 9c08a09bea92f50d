"""`toolc inspect --html`: one page that is whole, safe, and says what the bundle says."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.commands.drawing import Drawing
from toolc.compiler.commands.graph import NEAR, frames_of, near, shortened
from toolc.compiler.commands.page import _broken, page
from toolc.compiler.commands.restrictions import RESTRICTIONS, explained
from toolc.runtime import Bundle, Matcher

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Tags with attributes, texts of elements, and whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[data] += 1


def tools() -> list[dict[str, Any]]:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return [{"type": "function", "function": {"name": "one", "description": EVIL, "parameters": number}}]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return compile_tools(tools()).bundle


def data_of(text: str) -> dict[str, Any]:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    value: dict[str, Any] = json.loads(data)
    return value


def test_the_page_is_whole_and_asks_for_nothing(bundle: Bundle) -> None:
    text = page(bundle, f"{EVIL}.toolc", 1)
    reader = Reader()
    reader.feed(text.replace("<wbr>", ""))
    reader.close()
    assert reader.open == ["html"] or reader.open == []
    assert [tag for tag, _ in reader.tags].count("script") == 2 and "img" not in dict(reader.tags)
    assert not any({"src", "href", "onerror", "onclick"} & attrs.keys() for _, attrs in reader.tags)
    assert "http:" not in text and "https:" not in text
    assert any("default-src 'none'" in (attrs.get("content") or "") for _, attrs in reader.tags)
    assert {attrs["id"] for tag, attrs in reader.tags if tag == "section"} == {
        "facts",
        "restrictions",
        "tools",
        "automaton",
        "sizes",
        "keywords",
    }
    assert reader.texts[EVIL] == 1 and reader.texts["one"] >= 1 and reader.texts["#/0/function/parameters"] == 0
    assert text == page(bundle, f"{EVIL}.toolc", 1)


def test_masks_are_those_of_the_matcher(bundle: Bundle) -> None:
    masks = data_of(page(bundle, "x", 1))
    assert len(masks) > 10
    for state, mask in masks.items():
        matcher = Matcher(bundle, mask["entry"])
        text = mask["text"].removesuffix("<|end|>")
        if text != mask["text"]:
            continue  # the end of turn is no text
        if "\\" in text:
            continue  # part of a character, shown by its number
        data = text.encode()
        assert matcher.advance_bytes(data) == len(data)
        assert (matcher.state, matcher.counter, matcher.depth) == (int(state), mask["counter"], mask["depth"])
        allowed = matcher.allowed_tokens()
        assert mask["count"] == allowed.size
        for token, shown in mask["tokens"]:
            assert token in allowed and shown == bundle.vocab.shown(token)


def test_frames_hold_what_can_be_reached(bundle: Bundle) -> None:
    frames, left_out = frames_of(bundle)
    assert not left_out
    seen = Counter(state for frame in frames for state in frame.place if state > 1)
    assert max(seen.values()) == 1 and set(bundle.entry.values()) <= set(frames[0].place)
    assert not any(frame.left_out for frame in frames)
    assert any(edge.calls is not None for edge in frames[0].edges) and any(frame.pops for frame in frames[1:])
    for mask in data_of(page(bundle, "x", 1)):
        assert int(mask) in seen or int(mask) == 1


def test_a_small_automaton_is_drawn_as_it_is() -> None:
    made = compile_grammar('start: "yes" | "no" | /[a-c]x/\n').bundle
    (frame,), _ = frames_of(made)
    texts = sorted(edge.text or bytes(s for s in edge.symbols if s < 256).decode() for edge in frame.edges)
    assert texts == ["", "abc", "no", "x", "yes"]  # "" is the end of turn


def test_many_frames_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch, bundle: Bundle) -> None:
    every, _ = frames_of(bundle)
    monkeypatch.setattr("toolc.compiler.commands.graph.MOST_DRAWN", 1)
    some, left_out = frames_of(bundle)
    assert len(some) == 1 and left_out == len(every) - 1
    found = page(bundle, "x", 1)
    assert f"{left_out} frames more are left out" in found and f"{len(every)} frames</h2>" in found


def test_what_a_page_may_not_have_is_shown_as_such() -> None:
    said = "a\x00b\x1bc\ufffed\x7fe\tf"
    made = compile_tools([{"name": "t", "description": said, "input_schema": {"type": "object"}}]).bundle
    found = page(made, "x", 1)
    assert "a\ufffdb\ufffdc\ufffdd\ufffde\tf" in found
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", found)


def test_large_frames_are_cut_and_say_so() -> None:
    rng = random.Random(5)
    words = " | ".join(f'"{rng.randrange(10**6):06d}"' for _ in range(3000))
    made = compile_grammar(f"start: {words}\n").bundle
    (frame,), _ = frames_of(made)
    assert len(frame.place) < 400 and frame.left_out > 0
    assert f"{frame.left_out} states are left out" in page(made, "x", 1)


def test_the_command(bundle: Bundle, tmp_path: Path) -> None:
    bundle.write(tmp_path / "b.toolc", standalone=True)
    done = CliRunner().invoke(cli, ["inspect", str(tmp_path / "b.toolc"), "--html", str(tmp_path / "b.html"), "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["file_bytes"] == (tmp_path / "b.html").stat().st_size
    text = (tmp_path / "b.html").read_text()
    assert "<title>b.toolc</title>" in text
    node = shutil.which("node")
    if node is not None:
        (tmp_path / "script.js").write_text(re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[0])
        subprocess.run([node, "--check", str(tmp_path / "script.js")], check=True)


ACTS = """(() => {
  const frames = [...document.querySelectorAll(".frame")], graph = frames[0].querySelector(".graph"), out = {};
  const paint = s => getComputedStyle(s.querySelector("circle")).stroke;
  const [first, second] = graph.querySelectorAll(".state");
  first.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  out.ready = document.body.dataset.ready;
  out.mask = document.getElementById("mask").textContent;
  out.chosen = [paint(first), paint(second)];
  const before = graph.getBoundingClientRect().width;
  frames[0].querySelector("[data-zoom='1']").click();
  out.zoomed = graph.getBoundingClientRect().width / before;
  out.open = frames.map(f => f.open);
  frames.forEach(f => { f.open = true; });
  const more = document.querySelector("[data-all]"), one = more.closest(".frame");
  more.click();
  out.shown = [...one.querySelectorAll(".graph")].map(g => getComputedStyle(g).display !== "none");
  out.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  out.letters = Math.min(...[...document.querySelectorAll(".graph text")].filter(t => t.getBoundingClientRect().height)
    .map(t => t.getBoundingClientRect().height));
  out.torn = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node; (node = walk.nextNode());) {
    if (node.parentElement.closest("svg,script,#mask")) continue;
    for (const word of node.data.matchAll(/[a-zA-Z]{2,30}/g)) {
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) out.torn.push(word[0]);
    }
  }
  return JSON.stringify(out);
})()"""


@pytest.mark.parametrize("width", [1300, 400])
def test_in_a_browser(width: int, tmp_path: Path) -> None:
    """Masks, frames and buttons work; no word is torn, nothing is wider than the window, letters can be read."""
    pytest.importorskip(
        "PyQt6.QtWebEngineCore", reason="needs Chromium: pip install PyQt6-WebEngine", exc_type=ImportError
    )
    long = {"type": "object", "properties": {f"a_rather_long_name_of_{n}": {"type": "number"} for n in range(30)}}
    made = compile_tools([{"name": "rather_" * 8 + "long", "input_schema": long}, *tools()], "builtin").bundle
    (tmp_path / "b.html").write_text(page(made, "b", 1))
    (tmp_path / "acts.js").write_text(ACTS)
    command = [sys.executable, "-m", "tests.cli.browser", str(tmp_path / "b.html"), str(tmp_path / "acts.js")]
    done = subprocess.run([*command, str(width)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ready"] == "1" and found["zoomed"] == pytest.approx(1.25, 0.02)
    assert "allowed tokens: " in found["mask"] and found["chosen"][0] != found["chosen"][1]
    assert found["open"] == [number == 0 for number in range(len(frames_of(made)[0]))]
    assert found["shown"] == [False, True]
    assert found["wide"] <= 0 and found["letters"] >= 10 and found["torn"] == []


def test_labels_can_be_read() -> None:
    """What is drawn at first: labels cover no state and hardly ever each other, and columns leave them room."""
    path = Path(__file__).parents[2] / "tools_specs" / "weather.json"
    made = compile_tools(path, "builtin", options=Options(protocol="hermes")).bundle
    labels = covered = 0
    for frame in frames_of(made)[0]:
        some = near(frame)
        assert len(some.place) <= NEAR or len({x for x, _ in some.place.values()}) <= 2
        assert {edge.source for edge in some.edges} | {edge.target for edge in some.edges} <= some.place.keys()
        drawn = Drawing(made, some)
        boxes = []
        for edge, beside in zip(some.edges, drawn.labels, strict=True):
            assert (beside is None) == (drawn.place[edge.target][0] < drawn.place[edge.source][0])
            if beside is not None:
                x, y, text = beside
                boxes.append((x - 6.7 * len(text) / 2, x + 6.7 * len(text) / 2, y))
                if drawn.place[edge.target][0] > drawn.place[edge.source][0]:
                    assert drawn.place[edge.target][0] - drawn.place[edge.source][0] >= 6.7 * len(text) + 30
        labels += len(boxes)
        covered += sum(
            left < b and a < right and abs(y - other) < 10
            for number, (left, right, y) in enumerate(boxes)
            for a, b, other in boxes[:number]
        )
    assert labels > 100 and covered <= labels // 20


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("short", 8, "short"),
        ("one two three", 9, "one two …"),
        ('"arguments": {"place"', 20, '"arguments": {"…'),
        ("a" * 30, 9, "a" * 8 + "…"),
    ],
)
def test_labels_are_cut_between_words(text: str, most: int, shown: str) -> None:
    assert shortened(text, most) == shown


def test_every_restriction_has_its_sentence(repository: Path) -> None:
    text = (repository / "docs" / "json-schema.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| name \| what is left out \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    named = set(re.findall(r"^\| `([\w-]+)`", "".join(tables), re.MULTILINE))
    assert named and RESTRICTIONS.keys() == named | {"max-depth"}
    options = {option.partition(" ")[0] for _, option in RESTRICTIONS.values() if option}
    known = {name for one in cli.commands["compile"].params for name in one.opts}
    assert options <= known


def test_lines_may_end_after_what_separates_words_only() -> None:
    assert _broken("a_b/c-d <'x'>.") == "a_<wbr>b/<wbr>c-<wbr>d &lt;&#x27;x&#x27;&gt;."


def test_the_page_says_what_is_left_out(bundle: Bundle) -> None:
    found = page(bundle, "x", 1)
    for name in bundle.meta["restrictions"]:
        assert explained(name) in found.replace("<wbr>", "").replace("&#x27;", "'")
    assert "Nothing valid is left out" in page(compile_grammar('start: "a"\n', "builtin").bundle, "x", 1)
