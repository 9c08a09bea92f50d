"""Train the built-in vocabulary: ``python -m toolc.compiler.vocab.train_builtin``.

A byte-level BPE of SIZE entries, trained on text that this file makes: English-like sentences, JSON in three layouts,
tool calls, code, dates, addresses and a little of many scripts. The text is plain nonsense; what counts is that JSON
and identifiers fall into tokens as real vocabularies cut them, with tokens that span several brackets and quotes.

Leaves out   reading the result: builtin.py.
Invariants   the same file, byte for byte, from the same version of tokenizers; the corpus does not depend on Python's
             random module. Every byte is a token. The control tokens are the last ids; <tool_call> and <think> are
             marked special: false, as Qwen 3 marks them, to keep the rule of table.py in use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from .builtin import builtin_path

SIZE = 8192
CONTROL = (
    ("<|begin|>", True),
    ("<|end|>", True),  # end of turn
    ("<|system|>", True),
    ("<|user|>", True),
    ("<|assistant|>", True),
    ("<|tool|>", True),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<tool_response>", False),
    ("</tool_response>", False),
    ("<think>", False),
    ("</think>", False),
    ("<|pad|>", True),
)
# Llama 3's cut with three digits at most
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

T = TypeVar("T")


class Dice:
    """splitmix64: the same numbers on every Python."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (z ^ (z >> 31)) % n

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def rank(self, items: Sequence[T]) -> T:
        """One of the items, the early ones more often."""
        return items[min(self.below(len(items)), self.below(len(items)))]


NOUNS = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work government number night point home water room mother area money
story fact month lot right study book eye job word business issue side kind head house service friend father power
hour game line end member law car city community name president team minute idea kid body information back parent face
others level office door health person art war history party result change morning reason research girl guy moment air
teacher force education foot boy age policy music market sense nation plan college interest death experience effect
use class control field development role effort rate heart drug show leader light voice wife police mind price report
decision son view relationship town road arm difference value building action season society tax director position
player record paper space ground form event matter center couple site project activity star table need court oil
situation cost industry figure street image phone data picture practice piece land product doctor wall patient worker
news test movie north love support technology step computer baby type attention film tree source hair window evidence
difficulty box key letter note card file folder page link address message email user account password token server
client request response query result error status code format version language library package module function method
argument parameter variable object array string integer float boolean list map schema property field index record
document database column row cell value default option setting config flag label tag title description summary comment
content text body header footer image video audio stream channel queue topic event task job worker process thread
session cookie cache memory disk storage bucket region zone cluster node container volume network port host domain
path route endpoint method weather forecast temperature humidity wind pressure rain snow cloud sunrise location
latitude longitude distance direction map flight hotel booking reservation ticket seat passenger airport airline train
station departure arrival destination origin currency amount balance payment invoice order item quantity price
discount customer supplier shipment delivery tracking warehouse stock inventory calendar meeting reminder alarm timer
schedule appointment contact recipe ingredient restaurant menu song artist album playlist genre movie rating review
author publisher chapter article translation keyword score rank limit offset filter sort range interval duration
frequency unit
""".split()
VERBS = """
be have do say go get make know think take see come want look use find give tell work call try ask need feel become
leave put mean keep let begin seem help talk turn start show hear play run move like live believe hold bring happen
write provide sit stand lose pay meet include continue set learn change lead understand watch follow stop create speak
read allow add spend grow open walk win offer remember love consider appear buy wait serve die send expect build stay
fall cut reach kill remain suggest raise pass sell require report decide pull return explain hope develop carry break
receive agree support hit produce eat cover catch draw choose cause point listen close search update delete insert
select fetch load save store parse format convert translate compute calculate validate check verify enable disable
connect disconnect upload download import export execute cancel confirm book schedule notify subscribe publish list
filter sort count measure record play pause resume
""".split()
ADJECTIVES = """
good new first last long great little own other old right big high different small large next early young important
few public bad same able available free full real simple clear possible recent certain personal open red difficult
blue green white black happy serious ready common poor natural significant similar hot dead central current maximum
minimum total average optional required valid invalid empty missing unknown active inactive pending complete partial
primary secondary local remote global internal external public private static dynamic random exact approximate daily
weekly monthly annual
""".split()
SMALL = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you
were all her she there would their we him been has when who will no more if out so up said what its about than into
them can only some could these two may then do first any my now such like our over me even most made after also did
many off before must well back through years where much your way down should because long each just those how too very
still between both under
""".split()
NAMES = """
James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph Jessica
Thomas Sarah Charles Karen Anna Peter Maria Carlos Sofia Ahmed Fatima Wei Yuki Priya Olga Ivan Chloe Lucas Emma Noah
Olivia Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Wilson Anderson
Taylor Moore
""".split()
CITIES = """
London Paris Berlin Madrid Rome Vienna Tokyo Beijing Shanghai Delhi Mumbai Cairo Lagos Nairobi Sydney Melbourne
Toronto Vancouver Chicago Boston Seattle Austin Denver Dallas Houston Miami Atlanta Lisbon Dublin Oslo Stockholm
Helsinki Zurich Prague Warsaw Athens Istanbul Moscow Seoul Singapore Bangkok Jakarta Manila Amsterdam Brussels Geneva
Barcelona
""".split()
COUNTRIES = """
France Germany Spain Italy Japan China India Brazil Canada Mexico Egypt Kenya Norway Sweden Poland USA UK
""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
ENUMS = """
celsius fahrenheit kelvin metric imperial USD EUR GBP JPY CNY asc desc low medium high urgent pending active completed
failed cancelled en fr de es it zh ja ko pt ru ar json xml csv html pdf png jpeg GET POST PUT DELETE PATCH true false
null string number integer boolean object array economy business first one_way round_trip km miles kg lb
""".split()
KEYS = """
id name type title description value values query city country location unit units date start_date end_date start end
time timezone user user_id email phone address street zip lat lon latitude longitude limit offset page page_size sort
order order_by filter filters status state code message error errors result results data items item count total amount
currency price quantity language source target text content body subject to from cc attachments url path file filename
format tags labels category categories parameters arguments properties required enum default minimum maximum pattern
additionalProperties function tool tools tool_calls call_id role assistant system created_at updated_at first_name
last_name options settings enabled verbose max_results min_price max_price include exclude fields metadata version key
token session_id request_id
""".split()
OTHER_SCRIPTS = """
Ceci n'est pas une pipe : où est la bibliothèque près du café, s'il vous plaît ? Ça va très bien, merci à tous.
Die schöne Straße führt über große Brücken; wir möchten später noch Äpfel und Öl für das Frühstück kaufen.
El niño comió piñas mañana; ¿dónde está el baño? ¡Qué día más bonito! La canción empezó después.
Não há informação sobre a estação; amanhã à noite vão às praças de São Paulo com o coração.
Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy. Árvíztűrő tükörfúrógép. Günaydın, nasılsınız? İyi akşamlar.
Привет, как дела? Сегодня хорошая погода, и мы идём в парк. Это не так просто, как кажется на первый взгляд.
Καλημέρα, τι κάνεις; Ο καιρός είναι καλός σήμερα και πάμε στη θάλασσα.
שלום, מה שלומך? היום יום יפה מאוד. مرحبا، كيف حالك؟ الطقس جميل اليوم في القاهرة.
नमस्ते, आप कैसे हैं? आज मौसम बहुत अच्छा है। สวัสดีครับ วันนี้อากาศดีมาก
今天天气很好，我们去公园吧。请问最近的地铁站在哪里？你好，世界！我想预订一张明天去北京的机票。
今日は天気がいいですね。東京の天気を教えてください。ありがとうございます。こんにちは、世界！
안녕하세요, 오늘 서울 날씨가 어때요? 내일 회의 일정을 알려 주세요. 감사합니다.
😀 😂 🎉 🚀 ❤️ 👍 🔥 ✨ ☀️ 🌧️ 🍕 🎵 ✅ ❌ → ← ≤ ≥ ≠ × ÷ ± ∞ √ ° € £ ¥ © ® ™ … – — “quoted” ‘single’ «guillemets»
""".strip().splitlines()


def corpus() -> Iterator[str]:
    """The training text, a document at a time."""
    dice = Dice(20)
    nouns, verbs, adjectives = (list(dict.fromkeys(words)) for words in (NOUNS, VERBS, ADJECTIVES))
    keys = list(dict.fromkeys(KEYS))
    for turn in range(1500):
        yield " ".join(_sentence(dice, nouns, verbs, adjectives) for _ in range(1 + dice.below(8))) + "\n"
        document = _call(dice, keys, nouns, verbs) if turn % 2 else _value(dice, keys, nouns, 3)
        yield json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"
        yield json.dumps(document, ensure_ascii=turn % 7 == 0) + "\n"
        yield json.dumps(document, indent=2 if turn % 3 else 4, ensure_ascii=False) + "\n"
        yield _code(dice, keys, nouns, verbs)
        yield " ".join(_literal(dice, nouns) for _ in range(6)) + "\n"
        if turn % 10 == 0:
            yield dice.pick(OTHER_SCRIPTS) + "\n"


def _sentence(dice: Dice, nouns: Sequence[str], verbs: Sequence[str], adjectives: Sequence[str]) -> str:
    words: list[str] = []
    for _ in range(4 + dice.below(10)):
        what = dice.below(12)
        if what < 5:
            words.append(dice.rank(SMALL))
        elif what < 8:
            noun = dice.pick(nouns)
            words.append(noun if dice.below(3) else noun[:-1] + "ies" if noun.endswith("y") else noun + "s")
        elif what < 10:
            verb = dice.pick(verbs)
            stem = verb.removesuffix("e")
            words.append(dice.pick((verb, verb, verb + "s", stem + "ed", stem + "ing", stem + "er")))
        elif what < 11:
            word = dice.pick(adjectives)
            words.append(dice.pick((word, word, word + "ly", "un" + word, word + "ness")))
        else:
            words.append(dice.pick((*NAMES, *CITIES, *DAYS, *MONTHS, "I", "don't", "it's", "we're", "you'll", "I've")))
    text = " ".join(words)
    if dice.below(3) == 0:
        text = text.replace(" and ", ", and ", 1).replace(" that ", ", that ", 1)
    return text[0].upper() + text[1:] + dice.pick((".", ".", ".", ".", "?", "!", ":", ";"))


def _literal(dice: Dice, nouns: Sequence[str]) -> str:
    """A date, number, address, identifier or the like, as text."""
    year, month, day = 1990 + dice.below(40), 1 + dice.below(12), 1 + dice.below(28)
    hour, minute = dice.below(24), dice.below(60)
    a, b = dice.pick(nouns), dice.pick(nouns)
    makers: tuple[Callable[[], str], ...] = (
        lambda: f"{year}-{month:02}-{day:02}",
        lambda: f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z",
        lambda: f"{hour:02}:{minute:02}",
        lambda: f"{dice.pick(MONTHS)} {day}, {year}",
        lambda: (
            f"https://www.{a}.com/{b}/{dice.below(1000)}?{dice.pick(KEYS)}={dice.pick(ENUMS)}&page={dice.below(50)}"
        ),
        lambda: f"http://api.{a}.org/v{1 + dice.below(3)}/{b}s/{dice.below(100000)}",
        lambda: (
            f"{dice.pick(NAMES).lower()}.{dice.pick(NAMES).lower()}@{a}.{dice.pick(('com', 'org', 'net', 'io', 'de'))}"
        ),
        lambda: f"+{1 + dice.below(99)} {dice.below(1000):03} {dice.below(10000):04}",
        lambda: (
            f"{dice.below(1 << 32):08x}-{dice.below(1 << 16):04x}-4{dice.below(1 << 12):03x}-a{dice.below(1 << 12):03x}"
        ),
        lambda: f"{dice.below(1000)}.{dice.below(100):02}",
        lambda: f"-{dice.below(180)}.{dice.below(10000):04}",
        lambda: str(dice.below(10 ** (1 + dice.below(7)))),
        lambda: f"{dice.pick(CITIES)}, {dice.pick(COUNTRIES)}",
        lambda: f"/{dice.pick(('home', 'usr', 'var', 'etc'))}/{a}/{b}.{dice.pick(('txt', 'py', 'json', 'csv', 'md'))}",
        lambda: f"{dice.below(256)}.{dice.below(256)}.{dice.below(256)}.{dice.below(256)}",
        lambda: f"^[a-z]{{{1 + dice.below(5)},{5 + dice.below(9)}}}-[0-9]+$",
    )
    return dice.pick(makers)()


def _key(dice: Dice, keys: Sequence[str], nouns: Sequence[str]) -> str:
    what = dice.below(8)
    if what < 5:
        return dice.pick(keys)
    a, b = dice.pick(nouns), dice.pick(nouns)
    return f"{a}_{b}" if what == 5 else a + b.capitalize() if what == 6 else a


def _value(dice: Dice, keys: Sequence[str], nouns: Sequence[str], depth: int) -> Any:
    """A random JSON value; objects are frequent near the top."""
    what = dice.below(14)
    if depth and what < 5 + depth:
        if what % 3:
            return {_key(dice, keys, nouns): _value(dice, keys, nouns, depth - 1) for _ in range(1 + dice.below(5))}
        return [_value(dice, keys, nouns, depth - 1) for _ in range(dice.below(5))]
    kind = dice.below(12)
    if kind < 2:
        return dice.below(10 ** (1 + dice.below(5)))
    if kind == 2:
        return dice.below(100000) / 100
    if kind == 3:
        return dice.pick((True, False, None))
    if kind < 6:
        return dice.pick(ENUMS)
    if kind == 6:
        return dice.pick(CITIES)
    if kind == 7:
        return f"{dice.pick(NAMES)} {dice.pick(NAMES)}"
    if kind == 8:
        return " ".join(dice.pick(nouns) for _ in range(1 + dice.below(4)))
    if kind == 9 and dice.below(3) == 0:
        return dice.pick(OTHER_SCRIPTS)[: 5 + dice.below(30)]
    if kind == 10:
        return dice.pick(
            ('say "yes"\n', "line one\nline two", "C:\\temp\\file", "a\tb", "", "<b>bold</b>", "50% off", "#1")
        )
    return _literal(dice, nouns)


def _call(dice: Dice, keys: Sequence[str], nouns: Sequence[str], verbs: Sequence[str]) -> Any:
    name = (
        f"{dice.pick(verbs)}_{dice.pick(nouns)}"
        if dice.below(4)
        else f"{dice.pick(verbs)}{dice.pick(nouns).capitalize()}"
    )
    arguments = {_key(dice, keys, nouns): _value(dice, keys, nouns, 2) for _ in range(dice.below(6))}
    what = dice.below(4)
    if what == 0:
        return {"name": name, "parameters": arguments}
    if what == 1:
        text = json.dumps(arguments, ensure_ascii=False)
        return {"id": f"call_{dice.below(10000)}", "type": "function", "function": {"name": name, "arguments": text}}
    if what == 2:
        return [{"name": name, "arguments": arguments}, {"name": name, "arguments": {}}]
    return {"name": name, "arguments": arguments}


def _code(dice: Dice, keys: Sequence[str], nouns: Sequence[str], verbs: Sequence[str]) -> str:
    verb, a, b, c = dice.pick(verbs), dice.pick(nouns), dice.pick(nouns), dice.pick(keys)
    big = a.capitalize() + b.capitalize()
    return dice.pick(
        (
            f"def {verb}_{a}({b}: str, {c}: int = {dice.below(100)}) -> dict[str, Any]:\n"
            f'    """{verb.capitalize()} the {a}."""\n    if not {b}:\n        raise ValueError("{a} is missing")\n'
            f'    return {{"{a}": {b}, "{c}": [{c} for _ in range({dice.below(10)})]}}\n',
            f"class {big}(Base):\n    def __init__(self, {a}=None):\n"
            f"        self.{a} = {a} or []\n        self._{b} = 0\n",
            f"function {verb}{big}({a}, {b}) {{\n  const {c} = await {a}.{verb}({{ {b}: {b} }});\n"
            f"  return {c} === null;\n}}\n",
            f'{{"type":"object","properties":{{"{a}":{{"type":"string","description":"The {a} to {verb}"}},"{c}":'
            f'{{"type":"integer"}}}},"required":["{a}"]}}\n',
            f"SELECT {a}, {b} FROM {c}s WHERE {a}_id = {dice.below(1000)} ORDER BY {b} DESC;\n",
            f"for ({a} = 0; {a} < {b}.length; {a}++) {{ {b}[{a}] += 1; }} // {verb} the {c}\n",
            f'<{a} {b}="{c}"><p>{verb}</p></{a}>\n',
            f'[{verb}_{a}({c}="{b}", limit={dice.below(100)}), {verb}_{b}(x=[1, 2, 3])]\n',
            f"- {verb.capitalize()} the **{a}** ([{b}](#{c}))\n## {big}\n1. {a}: `{c}`\n| {a} | {b} |\n|---|---|\n",
        )
    )


def train() -> str:
    """The tokenizer.json of the built-in vocabulary, minified."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE - len(CONTROL),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    for name, special in CONTROL:
        tokenizer.add_tokens([AddedToken(name, special=special, normalized=False)])
    document = json.loads(tokenizer.to_str())
    # merges as "a b", which every version of the library reads, and which is shorter
    merges = document["model"]["merges"]
    document["model"]["merges"] = [pair if isinstance(pair, str) else " ".join(pair) for pair in merges]
    document["model"]["vocab"] = dict(sorted(document["model"]["vocab"].items(), key=lambda item: item[1]))
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def main() -> None:
    """Write the file that is shipped."""
    path: Path = builtin_path()
    path.parent.mkdir(exist_ok=True)
    text = train()
    path.write_text(text, encoding="utf-8", newline="\n")
    document = json.loads(text)
    size = len(document["model"]["vocab"]) + len(document["added_tokens"])
    print(f"{path.name}: {size} tokens, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
