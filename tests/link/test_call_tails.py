"""Linking where arguments have no brackets of their own: a call from its name on is a part (link/call_tails.py)."""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases.protocols import FAMILIES
from tests.cases.renderings import RENDERINGS, TOOLS, Rendering
from tests.protocols.test_protocols import BOTH, CALLS, EACH
from tests.protocols.test_protocols import TOOLS as CLOSED
from tests.protocols.test_reading import read
from tests.protocols.vocabularies import vocab_for
from toolc.compiler import Options, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.compiled import Compiled
from toolc.compiler.errors import BudgetError
from toolc.compiler.grammar.assemble import Mark
from toolc.compiler.ir.nodes import Choice, Grammar, Literal, Ref, Repeat, Special, choice, sequence
from toolc.compiler.link import cache, link
from toolc.compiler.link.call_tails import with_tails
from toolc.runtime import Matcher, Vocab, subset
from toolc.runtime.format.bundle import Bundle

from ..lift.brute import brute_mask
from .test_link import COUNTED, LIST, OPEN, TREE, bits, compare

RAW = ("cohere_cmd5", "deepseek_v32", "glm45", "glm47", "kimi_k3", "mimo", "minimax_m2", "minimax_m3", "qwen3_coder",
       "step3", "lfm2", "llama3_builtin", "olmo3", "pythonic", "toolkengpt", "dots", "gigachat35",
       "hy3_opensource", "hy_v3", "hy_v4", "iquest_q1", "k2_horizon", "minicpm5", "muse", "seed_oss")  # fmt: skip
MORE = {"name": "more", "input_schema": COUNTED}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path_factory.mktemp("cache")))
    cache.forget()


@functools.cache
def vocab(name: str, as_tokens: bool = True) -> Vocab:
    """That of the family, with tokens that go across the borders of a call's tail."""
    family, rng = FAMILIES[name], random.Random(name)
    text = family.write(CALLS + CALLS if family.many else CALLS[:1]).encode()
    pieces: dict[bytes, None] = {}
    for _ in range(300):
        begin = rng.randrange(len(text))
        piece = text[begin : begin + rng.randrange(2, 40)]
        if not any(token.encode() in piece for token in (*family.tokens, *family.ends)):
            pieces.setdefault(piece)
    return vocab_for(name, as_tokens, tuple(pieces))


def compiled(name: str, tools: list[dict[str, Any]], as_tokens: bool = True, **options: Any) -> Compiled:
    given: dict[str, Any] = {"protocol": name, "named": False, "whitespace": 8, **options}  # texts of any blanks
    return compile_tools(tools, vocab(name, as_tokens), options=Options(**given))


def whole(name: str, tools: list[dict[str, Any]], as_tokens: bool = True, **options: Any) -> Bundle:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "split", lambda *_: None)
        made = compiled(name, tools, as_tokens, **options)
    assert made.report["parts"] is None
    return made.bundle


@functools.cache
def by_text(vocab: Vocab) -> dict[bytes, list[int]]:
    """The tokens of each text."""
    found: dict[bytes, list[int]] = {}
    for token in range(vocab.size):
        found.setdefault(vocab.token(token), []).append(token)
    return found


def along(one: Bundle, other: Bundle, text: str, entry: str, seed: str, tried: float) -> None:
    """Masks of two bundles along a text that is cut into tokens at random; some of them against every token."""
    rng, rest = random.Random(seed), text.encode()
    special = {name.encode(): token for name, token in one.meta["delimiters"].items() if token is not None}
    known = by_text(one.vocab)
    a, b = Matcher(one, entry), Matcher(other, entry)
    while True:
        mask = bits(a)
        assert (mask == bits(b)).all(), rest
        if rng.random() < tried:
            assert (mask == brute_mask(one, a)).all(), rest
        if not rest:
            return
        own = next((name for name in special if rest.startswith(name)), b"")
        piece = rest[: min((rest.find(name) for name in special if name in rest), default=len(rest))]
        begins = [token for n in range(1, len(piece) + 1) for token in known.get(piece[:n], ())]  # the shortest first
        fitting = [token for token in begins if mask[token]]
        token = special[own] if own else rng.choice(fitting[-3:])
        rest = rest[len(own or one.vocab.token(token)) :]
        a.advance(token)
        b.advance(token)


@BOTH
@EACH
def test_every_family_is_linked(name: str, as_tokens: bool) -> None:
    """Adding a tool makes its part alone, and the bytes are those of a fresh compile."""
    before = compiled(name, CLOSED, as_tokens)
    assert before.report["parts"]["all"] >= 2
    cache.forget()  # from the files
    more = compiled(name, [*CLOSED, MORE], as_tokens)
    parts = more.report["parts"]
    assert parts["all"] - parts["reused"] == 1 and parts["reused"] >= 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache.Parts, "get", lambda self, digest: None)
        fresh = compiled(name, [*CLOSED, MORE], as_tokens)
    assert fresh.report["parts"]["reused"] == 0
    assert fresh.bundle.encode() == more.bundle.encode()


@BOTH
@pytest.mark.parametrize("name", RAW)
def test_masks_and_calls_are_those_of_the_whole(name: str, as_tokens: bool) -> None:
    made, other, family = compiled(name, CLOSED, as_tokens), whole(name, CLOSED, as_tokens), FAMILIES[name]
    assert made.report["parts"] is not None
    one = made.bundle
    assert one.entry.keys() == other.entry.keys()
    assert one.meta["separable"] and other.meta["separable"]
    for calls in ([call] for call in CALLS):
        for n in range(4):
            along(one, other, family.write(calls, compact=n % 2 > 0), "required", f"{name}{n}", 0.2)
    for calls in [[call] for call in CALLS] + [CALLS] * family.many:
        readers = [read(bundle, "required", family.write(calls))[0] for bundle in (one, other)]
        assert readers[0].calls == readers[1].calls
        assert [(call.name, call.arguments) for call in readers[0].calls] == calls
    for n in range(6):
        compare(one, other, f"{name} {n}", 40, brute=n < 2)
    some = [subset(bundle, ["get_all", "stop.now-1"]) for bundle in (one, other)]
    for n in range(4):
        along(*some, family.write(CALLS[1:] if family.many else CALLS[1:2]), "required", f"{name}{n}", 0.2)
        compare(*some, f"{name} {n} subset", 40)


@pytest.mark.parametrize(
    "row",
    [row for row in RENDERINGS if row.protocol in RAW],
    ids=lambda row: f"{row.protocol}-{row.entry}-{RENDERINGS.index(row)}",
)
def test_along_what_templates_write(row: Rendering) -> None:
    made, other = compiled(row.protocol, TOOLS), whole(row.protocol, TOOLS)
    written = {"None": "null", "True": "true", "False": "false"}  # what stands here is read, and never written
    text = re.sub(r"(?<=[:\n>])(None|True|False)(?=[,}\n<])", lambda one: written[one[0]], row.text)
    assert made.report["parts"] is not None
    for n in range(2):
        along(made.bundle, other, text, row.entry, f"{row} {n}", 0.1)
    assert read(made.bundle, row.entry, row.text)[0].calls == read(other, row.entry, row.text)[0].calls


@pytest.mark.parametrize("soft_depth", [2, 4, 30])
@pytest.mark.parametrize("name", ["glm47", "minimax_m3", "qwen3_coder"])
def test_values_that_recur(name: str, soft_depth: int) -> None:
    """Linked where the frames of calls lie below the soft depth, else compiled as a whole."""
    tools = [{"name": f"t{n}", "input_schema": schema} for n, schema in enumerate((OPEN, LIST, TREE))]
    made, other = compiled(name, tools, soft_depth=soft_depth), whole(name, tools, soft_depth=soft_depth)
    assert made.report["parts"] is not None or soft_depth < 30
    for n in range(12):
        compare(made.bundle, other, f"{name} {soft_depth} {n}", 60, brute=True)


def test_what_a_longer_name_goes_on_with_opens_nothing(tmp_path: Path) -> None:
    """The tail begins with a byte that may also be the next one of another name: compiled as a whole."""
    path = tmp_path / "own.lark"
    path.write_text('tool{name, parameters}: name "x:" parameters ";"\nparameter{key, value}: key "=" value ","\n'
                    'KEEP_OUT: ","\ncall{tools}: "!" tools\n')  # fmt: skip
    apart = [{"name": name, "parameters": MORE["input_schema"]} for name in ("go", "run")]
    clash = [{"name": name, "parameters": MORE["input_schema"]} for name in ("go", "gox")]
    held = vocab_for("hermes")
    assert compile_tools(apart, held, options=Options(protocol=path)).report["parts"] == {"all": 1, "reused": 0}
    made = compile_tools(clash, held, options=Options(protocol=path))
    assert made.report["parts"] is None
    for n in range(4):
        compare(made.bundle, made.bundle, f"clash {n}", 40, brute=True)


def test_tails() -> None:
    """What of a call's rule is its tail, and what it begins with."""
    tag = Special("</a>")
    marks = {"t": Mark("tool", 0), "n": Mark("name"), "a": Mark("arguments"), "v": Mark("value")}
    rules = {"t": Literal(b""), "n": Literal(b"f"), "a": Repeat(Ref("p"), 0, None),
             "p": sequence(Literal(b"<p>"), Ref("v"), tag), "v": Literal(b"1")}  # fmt: skip
    empty = sequence()

    def cut(*items: Any) -> Any:
        made, openers = with_tails(Grammar({**rules, "t": sequence(*items)}, "t", marks=marks))
        assert set(openers) <= {"t#tail"}
        return made.rules["t"], made.rules.get("t#tail"), openers.get("t#tail"), set(made.groups)

    name, arguments, tail, group = Ref("n"), Ref("a"), Ref("t#tail"), {"t#tail"}
    line = choice(Literal(b"\n"), empty)
    # Up to the last delimiter; what may be left out behind it is not of the tail.
    assert cut(Literal(b"<"), name, Literal(b">"), arguments, Literal(b"</f>"), line) == (
        sequence(Literal(b"<"), name, tail, line),
        sequence(Literal(b">"), arguments, Literal(b"</f>")),
        (b">",),
        group,
    )
    # In brackets: from one to the other.
    assert cut(name, Literal(b".call("), arguments, Literal(b")=")) == (
        sequence(name, Literal(b".call"), tail, Literal(b"=")),
        sequence(Literal(b"("), arguments, Literal(b")")),
        (b"(",),
        set(),
    )
    # One symbol alone is none.
    rule, text, openers, groups = cut(name, arguments, line, tag)
    assert rule == sequence(name, choice(tail, tag)) and openers == (b"<", b"\n") and groups == group
    assert isinstance(text.items[0], Choice) and text.items[-1] == tag
    rules["a"] = empty
    assert cut(name, arguments, tag) == (sequence(name, arguments, tag), None, None, set())
    # Nothing to tell the end by; a bracket left open; no name before.
    for items in ((name, arguments), (name, Literal(b"("), arguments, tag), (arguments, name, tag)):
        assert cut(*items) == (sequence(*items), None, None, set())


@EACH
def test_a_limit_names_the_pointer_that_grew(name: str) -> None:
    """Whichever part it is in: what a pattern explodes into is blamed on its schema."""
    huge = {"type": "string", "pattern": "^(a|b)*a(a|b){24}$"}
    tools = [
        {"name": "fine", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"name": "f", "input_schema": {"type": "object", "properties": {"huge": huge}, "required": ["huge"],
                                       "additionalProperties": False}},
    ]  # fmt: skip
    with pytest.raises(BudgetError) as refused:
        compile_tools(tools, vocab_for(name), options=Options(protocol=name, budget=Budget(pattern_states=5000)))
    assert "#/1/input_schema/properties/huge" in str(refused.value.place)
