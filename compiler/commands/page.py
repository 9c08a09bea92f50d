"""``toolc inspect --html``: one page that shows a bundle, for a browser without a network.

Leaves out   the drawing of the automaton: see graph.py.
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

from .graph import COLUMN, ROW, Edge, Frame, frames_of, label
from .terminal import figures, listed, restrictions, size

MOST_STEPS = 40_000  # configurations that are looked at for masks
MOST_TOKENS = 48  # of a mask that are shown
MOST_KEYWORDS = 5_000
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")  # a page may not have these

CAUSES = (
    (
        "steps: what a byte does",
        ("symbol_", "state_cell", "state_break", "breaks", "delta", "cell_de", "push", "return", "special"),
    ),
    ("masks: which cell has which row", ("cell_", "row_")),
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
    return _PAGE.format(title=_text(name), body="\n".join(parts), data=data, style=_STYLE, script=_SCRIPT)


def _table(rows: list[tuple[Any, ...]], head: tuple[str, ...] = ()) -> str:
    def line(row: tuple[Any, ...], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_text(cell)}</{tag}>" for cell in row) + "</tr>"

    return "<table>" + (line(head, "th") if head else "") + "".join(line(row, "td") for row in rows) + "</table>"


def _text(value: Any) -> str:
    return html.escape(_NO_TEXT.sub("\ufffd", str(value)))


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
        ("restrictions", restrictions(list(meta.get("restrictions") or []))),
    ]
    return "<section id=facts>" + _table(rows) + "</section>"


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
        f"<rect width={count * 300 // total} height=12 class=bar></rect></svg></td></tr>"
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
    options = "".join(
        f"<option value={number}>frame {number}: {_text(frame.name)} ({len(frame.place)} states)</option>"
        for number, frame in enumerate(frames)
    )
    drawings = "".join(_svg(bundle, number, frame) for number, frame in enumerate(frames))
    rest = f"<p>{left_out:,} frames more are left out.</p>" if left_out else ""
    return (
        f"<section id=automaton><h2>The automaton: {len(frames) + left_out:,} frames</h2>{rest}"
        "<p>Wheel: zoom. Drag: move. Click a state: its mask. A dashed edge calls another frame, a double ring may "
        "return, a green state begins a frame.</p>"
        f"<select id=frame>{options}</select><div id=drawing>{drawings}</div>"
        "<div id=mask>No state is chosen.</div></section>"
    )


def _svg(bundle: Bundle, number: int, frame: Frame) -> str:
    xs, ys = zip(*frame.place.values())
    box = (min(xs) - 60, min(ys) - 60, max(xs) - min(xs) + 60 + COLUMN, max(ys) - min(ys) + 120)
    out = [f'<svg class=graph id=frame{number} viewBox="{box[0]} {box[1]} {box[2]} {box[3]}">']
    for edge in frame.edges:
        out.append(_edge(bundle, edge, frame.place))
    for state, (x, y) in frame.place.items():
        kind = "end" if state == FINISHED else "root" if state in frame.roots else ""
        ring = f'<circle cx="{x}" cy="{y}" r="15" class=ring></circle>' if state in frame.pops else ""
        out.append(
            f'<g class="state {kind}" data-state={state}>{ring}<circle cx="{x}" cy="{y}" r="12"></circle>'
            f'<text x="{x}" y="{y + 3}">{"end" if state == FINISHED else state}</text></g>'
        )
    if frame.left_out:
        out.append(f'<text x="{box[0] + 10}" y="{box[1] + 16}">{frame.left_out} states are left out</text>')
    return "".join(out) + "</svg>"


def _edge(bundle: Bundle, edge: Edge, place: dict[int, tuple[int, int]]) -> str:
    (x, y), (u, v) = place[edge.source], place[edge.target]
    kind = "edge calls" if edge.calls is not None else "edge"
    if edge.source == edge.target:
        path = f"M{x - 6} {y - 11}C{x - 22} {y - 40} {x + 22} {y - 40} {x + 6} {y - 11}"
        at = (x, y - 34)
    elif u > x:
        path = f"M{x + 12} {y}C{x + 60} {y} {u - 60} {v} {u - 13} {v}"
        at = ((x + u) // 2, (y + v) // 2 - 4)
    else:
        bend = min(y, v) - ROW
        path = f"M{x} {y - 12}C{x} {bend} {u} {bend} {u} {v - 13}"
        at = ((x + u) // 2, (min(y, v) + bend) // 2)
    text = _text(label(bundle, edge))
    whole = _text(label(bundle, edge, 400))
    words = f'<text x="{at[0]}" y="{at[1]}">{text}<title>{whole}</title></text>'
    return f'<g class="{kind}"><path d="{path}"></path>{words}</g>'


def _masks(bundle: Bundle, states: set[int]) -> dict[str, Any]:
    """State → the text that leads there, and its mask as tokens: the number, and some of them."""
    found: dict[int, Any] = {}
    seen: set[tuple[int, int]] = set()
    queue: deque[tuple[Matcher, str, bytes]] = deque((Matcher(bundle, name), name, b"") for name in bundle.entry)
    steps = 0
    while queue and steps < MOST_STEPS and len(found) < len(states):
        matcher, entry, text = queue.popleft()
        mark = (matcher.state, min(matcher.counter, 2))
        if mark in seen:
            continue
        seen.add(mark)
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
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse}td,th{text-align:left;padding:2px 14px 2px 0;vertical-align:top;overflow-wrap:anywhere}
#drawing{border:1px solid #ccc;height:520px;margin:.5em 0;overflow:hidden}
.graph{width:100%;height:100%;display:none;cursor:grab}.graph.on{display:block}
.graph text{font:10px ui-monospace,monospace;text-anchor:middle}.state circle{fill:#eef;stroke:#446}
.state{cursor:pointer}.state .ring{fill:none}.root circle{fill:#cec}.end circle{fill:#ddd}
.state.on circle{stroke:#c00;stroke-width:3}
.edge path{fill:none;stroke:#888}.calls path{stroke-dasharray:4 3;stroke:#46a}.bar{fill:#68a}
#mask{min-height:6em}#mask code{background:#f2f2f2;padding:0 3px;margin:1px;display:inline-block;white-space:pre-wrap}
"""

_SCRIPT = """
"use strict";
const masks=JSON.parse(document.getElementById("data").textContent);
const pick=document.getElementById("frame"),panel=document.getElementById("mask");
const graphs=[...document.querySelectorAll(".graph")];
const show=()=>graphs.forEach((g,i)=>g.classList.toggle("on",i===+pick.value));
pick.addEventListener("change",show);show();
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
graphs.forEach(g=>{
  const box=()=>g.getAttribute("viewBox").split(" ").map(Number),set=b=>g.setAttribute("viewBox",b.join(" "));
  g.addEventListener("wheel",e=>{e.preventDefault();const b=box(),r=g.getBoundingClientRect(),k=e.deltaY>0?1.2:1/1.2;
    const fx=(e.clientX-r.left)/r.width,fy=(e.clientY-r.top)/r.height;
    set([b[0]+b[2]*fx*(1-k),b[1]+b[3]*fy*(1-k),b[2]*k,b[3]*k])},{passive:false});
  let at=null;g.addEventListener("pointerdown",e=>{at=[e.clientX,e.clientY,box()]});
  window.addEventListener("pointermove",e=>{if(!at)return;const r=g.getBoundingClientRect(),b=at[2],
    k=Math.max(b[2]/r.width,b[3]/r.height);set([b[0]-(e.clientX-at[0])*k,b[1]-(e.clientY-at[1])*k,b[2],b[3]])});
  window.addEventListener("pointerup",()=>{at=null});
});
document.body.dataset.ready="1";
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';
 base-uri 'none'; form-action 'none'">
<style>{style}</style></head><body><h1>{title}</h1>
{body}
<script type="application/json" id="data">{data}</script>
<script>{script}</script></body></html>
"""
