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

from toolc.compiler import compile_grammar, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.commands.graph import frames_of
from toolc.compiler.commands.page import page
from toolc.runtime import Bundle, Matcher

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
VOID = {"meta", "br"}


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
    reader.feed(text)
    reader.close()
    assert reader.open == ["html"] or reader.open == []
    assert [tag for tag, _ in reader.tags].count("script") == 2 and "img" not in dict(reader.tags)
    assert not any({"src", "href", "onerror", "onclick"} & attrs.keys() for _, attrs in reader.tags)
    assert "http:" not in text and "https:" not in text
    assert any("default-src 'none'" in (attrs.get("content") or "") for _, attrs in reader.tags)
    assert {attrs["id"] for tag, attrs in reader.tags if tag == "section"} == {
        "facts",
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
  const graph = document.querySelector(".graph.on"), box = graph.getBoundingClientRect(), out = {};
  const paint = s => getComputedStyle(s.querySelector("circle")).stroke;
  const [first, second] = graph.querySelectorAll(".state");
  first.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  out.ready = document.body.dataset.ready;
  out.mask = document.getElementById("mask").textContent;
  out.chosen = [paint(first), paint(second)];
  const before = graph.getAttribute("viewBox");
  graph.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: box.left + 9, clientY: box.top + 9}));
  out.zoomed = graph.getAttribute("viewBox") !== before;
  const pick = document.getElementById("frame");
  pick.value = 1;
  pick.dispatchEvent(new Event("change"));
  out.shown = [...document.querySelectorAll(".graph")].map(g => getComputedStyle(g).display !== "none");
  return JSON.stringify(out);
})()"""


def test_in_a_browser(bundle: Bundle, tmp_path: Path) -> None:
    pytest.importorskip(
        "PyQt6.QtWebEngineCore", reason="needs Chromium: pip install PyQt6-WebEngine", exc_type=ImportError
    )
    (tmp_path / "b.html").write_text(page(bundle, "b", 1))
    (tmp_path / "acts.js").write_text(ACTS)
    command = [sys.executable, "-m", "tests.cli.browser", str(tmp_path / "b.html"), str(tmp_path / "acts.js")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ready"] == "1" and found["zoomed"] and "allowed tokens: " in found["mask"]
    assert found["chosen"][0] != found["chosen"][1]
    assert found["shown"] == [number == 1 for number in range(len(frames_of(bundle)[0]))]
