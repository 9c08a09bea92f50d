"""``toolc inspect --html``: one page that shows a bundle, for a browser without a network.

Leaves out   what is drawn of the automaton: see graph.py; where it stands: see drawing.py.
Invariants   everything that came from a spec or tokenizer is escaped; the page's own policy forbids every request;
             equal bundles give equal pages. The masks are those of `Matcher`, at the first configuration found that
             is in the state: its counter and what lies below matter, so the text that leads there stands beside.
"""

from __future__ import annotations

import html
import json
import re
from collections import deque
from typing import Any

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.keyword_report import unpack
from toolc.runtime.format.ops import FINISHED
from toolc.runtime.host.matcher import Matcher

from .drawing import Drawing, escaped
from .graph import Frame, frames_of, near
from .restrictions import explained
from .terminal import counted, figures, listed, many_keys, size

MOST_STEPS = 40_000  # configurations that are looked at for masks
MOST_TOKENS = 48  # of a mask that are shown
MOST_KEYWORDS = 5_000
_SEPARATOR = re.compile(r"(?<=[/._#~-])(?=\w)")

CAUSES = (
    (
        "steps: what a byte does",
        ("symbol_", "state_cell", "state_break", "breaks", "delta", "cell_de", "push", "return", "special"),
    ),
    ("masks: which cell has which row", ("cell_", "row_")),
    (
        "registers: keys in any order",
        ("state_register", "register_", "test_", "check", "cell_check", "chain_check"),
    ),
    ("masks: lists of tokens", ("list_",)),
    ("masks: bit rows", ("dense",)),
    ("masks: what lies below in the stack", ("chain",)),
    ("budgets and the shortest close", ("state_close", "close_", "owed", "forced", "state_forced")),
    ("subsets of tools and marks", ("state_mark", "symbol_mark", "mark", "tool_", "narrowing")),
)


def page(bundle: Bundle, name: str, file_bytes: int) -> str:
    """The page of a bundle."""
    frames, left_out = frames_of(bundle)
    shown = {state for frame in frames for state in frame.place}
    masks = _masks(bundle, shown)
    parts = [
        _facts(bundle, name, file_bytes),
        _tools(bundle),
        _automaton(bundle, frames, left_out),
        _sizes(bundle),
        _keywords(bundle),
    ]
    data = json.dumps(masks, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    words = {"title": escaped(name), "heading": _broken(name), "body": "\n".join(parts), "data": data}
    return _PAGE.format(**words, style=_STYLE, script=_SCRIPT)


def _table(rows: list[tuple[Any, ...]], head: tuple[str, ...] = ()) -> str:
    def line(row: tuple[Any, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_broken(cell)}</{tag}>" for cell in row) + "</tr>"

    return "<table>" + (line(head, "th") if head else "") + "".join(line(row, "td") for row in rows) + "</table>"


def _broken(value: Any) -> str:
    """Text whose lines may end after what separates words in names and pointers, never inside of a word."""
    return "<wbr>".join(escaped(part) for part in _SEPARATOR.split(str(value)))


def _facts(bundle: Bundle, name: str, file_bytes: int) -> str:
    meta, spec = bundle.meta, bundle.meta.get("spec") or {}
    rows = [
        ("file", f"{name}, {size(file_bytes)}, digest {bundle.digest}"),
        (
            "from",
            f"{spec.get('name', 'unknown')} ({spec.get('kind', 'unknown')}), by {meta.get('compiler', 'unknown')}",
        ),
        ("tokenizer", f"{bundle.vocab.meta.get('source')}: {bundle.vocab.size:,} tokens, digest {bundle.vocab.digest}"),
        ("protocol", str(meta.get("protocol") or "none")),
        ("entries", listed(list(bundle.entry), 24)),
        ("figures", figures(meta.get("counts") or {})),
    ]
    names = list(meta.get("restrictions") or [])
    large = f"<p>{escaped(many_keys(list(meta['many_keys']), 40))}.</p>" if meta.get("many_keys") else ""
    less = "".join(f"<dt>{_broken(name)}</dt><dd>{escaped(explained(name))}</dd>" for name in names)
    return (
        "<section id=facts>" + _table(rows) + "</section><section id=restrictions><h2>What it never writes</h2>"
        f"<p>{'Valid texts that the masks leave out, by rule:' if less else 'Nothing valid is left out.'}</p>"
        f"<dl>{less}</dl>{large}</section>"
    )


def _tools(bundle: Bundle) -> str:
    if not bundle.tools:
        return ""
    rows = [(t.get("name", ""), t.get("pointer", ""), t.get("description", "")) for t in bundle.tools]
    return (
        f"<section id=tools><h2>{len(rows)} tools</h2>" + _table(rows, ("name", "place", "description")) + "</section>"
    )


def _sizes(bundle: Bundle) -> str:
    arrays = {name: array.nbytes for name, array in bundle.tables.arrays().items()}
    total = sum(arrays.values()) or 1
    causes: dict[str, int] = dict.fromkeys([cause for cause, _ in CAUSES] + ["other"], 0)
    for name, count in arrays.items():
        heads = [(len(head), cause) for cause, all_heads in CAUSES for head in all_heads if name.startswith(head)]
        causes[max(heads)[1] if heads else "other"] += count
    bars = "".join(
        f"<tr><td>{html.escape(cause)}</td><td>{size(count)}</td><td><svg width=300 height=12 role=img>"
        f"<rect width={count * 300 // total} height=12 class=size></rect></svg></td></tr>"
        for cause, count in causes.items()
        if count
    )
    every = _table(
        [(name, size(count)) for name, count in sorted(arrays.items(), key=lambda a: (-a[1], a[0])) if count]
    )
    more = f"<details><summary>array by array</summary>{every}</details>"
    return (
        f"<section id=sizes><h2>Size by cause: {size(total)} before deflation</h2><table>{bars}</table>{more}</section>"
    )


def _keywords(bundle: Bundle) -> str:
    rows = unpack(bundle.meta.get("report") or [[], []])
    if not rows:
        return ""
    cut = f"<p>{len(rows) - MOST_KEYWORDS:,} more are left out.</p>" if len(rows) > MOST_KEYWORDS else ""
    lines = [(place, keyword, status, ", ".join(names)) for place, keyword, status, names in rows[:MOST_KEYWORDS]]
    table = _table(lines, ("place", "keyword", "status", "narrowed by"))
    return (
        f"<section id=keywords><h2>{len(rows):,} keywords</h2>"
        f"<details open><summary>keyword by keyword</summary>{table}{cut}</details></section>"
    )


def _automaton(bundle: Bundle, frames: list[Frame], left_out: int) -> str:
    drawings = "".join(_frame(bundle, number, frame) for number, frame in enumerate(frames))
    rest = f"<p>{left_out:,} frames more are left out.</p>" if left_out else ""
    return (
        f"<section id=automaton><h2>The automaton: {counted(len(frames) + left_out, 'frame')}</h2>{rest}"
        "<p>A frame is what is read between an opening bracket and its closing one; the first is the whole text. Open "
        "a frame to see it, drag it to move, click a state for its mask. A green state begins a frame, a double ring "
        "may end it, a dashed edge reads a whole frame inside. A faint edge leads back: point at it for its text. At "
        "first a frame is drawn as far as it can be read, without the bytes of characters beyond ASCII.</p>"
        f"{drawings}<div id=mask>No state is chosen.</div></section>"
    )


def _frame(bundle: Bundle, number: int, frame: Frame) -> str:
    """A frame that opens: its buttons, and its drawing at the size at which its letters can be read."""
    some = near(frame)
    less = len(some.edges) < len(frame.edges) or len(some.place) < len(frame.place)
    whole = Drawing(bundle, frame).svg("graph far") if less else ""
    more = f"<button data-all>draw all {counted(len(frame.place), 'state')}</button>" if less else ""
    cut = f"<p>{frame.left_out} states are left out.</p>" if frame.left_out else ""
    return (
        f"<details class=frame{' open' if not number else ''}><summary>frame {number}: {escaped(frame.name)}, "
        f"{counted(len(frame.place), 'state')}</summary>{cut}<div class=bar><button data-zoom=-1>−</button>"
        f"<button data-zoom=1>+</button><button data-zoom=0>fit</button>{more}</div>"
        f"<div class=drawing>{Drawing(bundle, some).svg('graph')}{whole}</div></details>"
    )


def _masks(bundle: Bundle, states: set[int]) -> dict[str, Any]:
    """State → the text that leads there, and its mask as tokens: the number, and some of them."""
    found: dict[int, Any] = {}
    seen: dict[tuple[int, int], int] = {}  # the most members of an object that led there
    queue: deque[tuple[Matcher, str, bytes]] = deque((Matcher(bundle, name), name, b"") for name in bundle.entry)
    steps = 0
    while queue and steps < MOST_STEPS and len(found) < len(states):
        matcher, entry, text = queue.popleft()
        mark = (matcher.state, min(matcher.counter, 2))
        members = matcher.register.bit_count()
        if seen.get(mark, -1) >= members:
            continue
        seen[mark] = members
        if matcher.state in states and matcher.state not in found:
            found[matcher.state] = _mask(bundle, matcher, entry, text)
        if matcher.state == FINISHED:
            continue
        tried: set[int] = set()
        for byte in matcher.expected_bytes():
            number = int(bundle.tables.symbol_class[byte])
            if number not in tried:
                tried.add(number)
                steps += 1
                fork = matcher.fork()
                if fork.advance_bytes(bytes([byte])) == 1:
                    queue.append((fork, entry, text + bytes([byte])))
        for token in matcher.expected_special():
            steps += 1
            fork = matcher.fork()
            if fork.try_advance(int(token)):
                queue.append((fork, entry, text + bundle.vocab.shown(int(token)).encode()))
    return {str(state): found[state] for state in sorted(found)}


def _mask(bundle: Bundle, matcher: Matcher, entry: str, text: bytes) -> dict[str, Any]:
    ids = matcher.allowed_tokens()
    some = ids if ids.size <= MOST_TOKENS else ids[:: max(1, ids.size // MOST_TOKENS)][:MOST_TOKENS]
    return {
        "entry": entry,
        "text": text.decode("utf-8", "backslashreplace"),
        "counter": matcher.counter,
        "depth": matcher.depth,
        "count": int(ids.size),
        "tokens": [[int(token), bundle.vocab.shown(int(token))] for token in some],
    }


_STYLE = """
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--line:#888;--soft:#f2f2f2;--state:#eef;
--root:#cec;--end:#ddd}
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#181a1d;
--line:#889;--soft:#2a2d31;--state:#334;--root:#354;--end:#444}}
body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;
color:var(--ink);background:var(--paper)}
h1,h2,summary,p,dd{overflow-wrap:break-word}
table{border-collapse:collapse}td,th{text-align:left;padding:3px 16px 3px 0;vertical-align:top}
td:first-child,dt{font-weight:600}section{overflow-x:auto}#automaton{overflow:visible}dd{margin:0 0 .4em 1.2em}
.frame{border:1px solid var(--line);border-radius:6px;margin:.5em 0;padding:.2em .6em}
summary{cursor:pointer;padding:.2em 0}
.bar button{font:inherit;min-width:2.4em;margin:0 .4em .4em 0;padding:0 .5em}
.drawing{overflow:auto;max-height:70vh;touch-action:pan-x pan-y}.graph{display:block;cursor:grab}
.graph text{font:11px ui-monospace,Menlo,Consolas,monospace;text-anchor:middle;fill:var(--ink)}
.edge text{paint-order:stroke;stroke:var(--paper);stroke-width:4px}
.back path{stroke-opacity:.35}.far,.whole .graph{display:none}.whole .far{display:block}
.state{cursor:pointer}.state circle{fill:var(--state);stroke:var(--line)}.state .ring{fill:none}
.root circle{fill:var(--root)}.end circle{fill:var(--end)}.state.on circle{stroke:#d22;stroke-width:3}
.edge path{fill:none;stroke:var(--line)}.calls path{stroke-dasharray:4 3;stroke:#58c}.size{fill:#68a}
#mask{position:sticky;bottom:0;max-height:30vh;overflow:auto;background:var(--paper);
border-top:1px solid var(--line);padding:.4em 0}
#mask code{background:var(--soft);padding:0 3px;margin:1px;display:inline-block;white-space:pre-wrap;
overflow-wrap:break-word;max-width:100%}
@media(max-width:700px){body{padding:0 .7em}td,th{display:block;padding:0}tr{display:block;margin-bottom:.6em}
th{display:none}
td{overflow-wrap:break-word}td svg{max-width:100%}}
"""

_SCRIPT = """
"use strict";
const masks=JSON.parse(document.getElementById("data").textContent),panel=document.getElementById("mask");
const add=(tag,text)=>{const e=document.createElement(tag);e.textContent=text;panel.append(e);return e};
document.querySelectorAll(".state").forEach(s=>s.addEventListener("click",()=>{
  document.querySelectorAll(".state.on").forEach(o=>o.classList.remove("on"));s.classList.add("on");
  const n=s.dataset.state,m=masks[n];panel.textContent="";
  if(!m){add("p","State "+n+": no short text was found that leads here.");return}
  add("p","State "+n+", counter "+m.counter+", "+m.depth+" frames deep; allowed tokens: "+m.count);
  const p=add("p","from "+m.entry+", after ");
  const c=document.createElement("code");c.textContent=m.text||"(nothing)";p.append(c);
  m.tokens.forEach(([id,t])=>{const c=add("code",t);c.title="token "+id});
  if(m.count>m.tokens.length)add("span"," and "+(m.count-m.tokens.length)+" more");
}));
document.querySelectorAll(".frame").forEach(f=>{
  const hold=f.querySelector(".drawing"),graphs=[...f.querySelectorAll(".graph")];
  let g=graphs[0],scale=1;
  const draw=()=>{const b=g.viewBox.baseVal;g.setAttribute("width",b.width*scale);
    g.setAttribute("height",b.height*scale)};
  f.querySelectorAll("[data-zoom]").forEach(b=>b.addEventListener("click",()=>{const k=+b.dataset.zoom;
    scale=k?Math.min(4,Math.max(.05,scale*1.25**k)):Math.min(1,hold.clientWidth/g.viewBox.baseVal.width);draw()}));
  const all=f.querySelector("[data-all]");
  if(all)all.addEventListener("click",()=>{f.classList.add("whole");all.remove();g=graphs[1];draw();middle()});
  let at=null;
  hold.addEventListener("pointerdown",e=>{
    if(e.pointerType==="mouse")at=[e.clientX,e.clientY,hold.scrollLeft,hold.scrollTop]});
  window.addEventListener("pointermove",e=>{
    if(at){hold.scrollLeft=at[2]-e.clientX+at[0];hold.scrollTop=at[3]-e.clientY+at[1]}});
  window.addEventListener("pointerup",()=>{at=null});
  const middle=()=>{const r=g.querySelector(".root")||g.querySelector(".state");if(f.open&&r){
    const p=r.getBoundingClientRect(),h=hold.getBoundingClientRect();hold.scrollTop+=p.top-h.top-h.height/2}};
  f.addEventListener("toggle",middle);middle();
});
document.body.dataset.ready="1";
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';
 base-uri 'none'; form-action 'none'">
<style>{style}</style></head><body><h1>{heading}</h1>
{body}
<script type="application/json" id="data">{data}</script>
<script>{script}</script></body></html>
"""
