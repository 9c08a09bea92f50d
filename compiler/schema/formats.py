r"""The values of ``format`` as regular expressions over a string's characters.

Leaves out   OpenAPI's formats of numbers (atoms.py), patterns as JSON text (patterns.py).
Invariants   every expression is in ECMA-262 syntax and anchored at both ends. ``pattern`` matches only strings of the
             format; ``widest`` matches all of them, and is what the complement is taken from: where the two differ the
             format is narrowed, which is the declared restriction ``formats``, with ``narrowed`` saying how. A format
             without ``widest`` cannot be negated.
Source       the documents named beside each; json-schema.org 2020-12 validation, 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        pattern: what is generated.
        source: where the format is defined.
        widest: matches at least every string of the format; empty: not known, so no complement.
        narrowed: which valid strings ``pattern`` leaves out; empty: none.
        besides: strings without the format that the complement leaves out, as ``widest`` matches them; empty: none.
        openapi: a format only of OpenAPI documents, an annotation elsewhere.
        since: the first draft that defines it, where values of another form are common in those before: an annotation
            there, but for OpenAPI documents.
    """

    pattern: str
    source: str
    widest: str = ""
    narrowed: str = ""
    besides: str = ""
    openapi: bool = False
    since: int = 4


def _whole(text: str) -> str:
    return f"^(?:{text})$"


# -- dates and times: RFC 3339, 5.6 and 5.7

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR, _MINUTE, _FRACTION = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]", r"(?:\.[0-9]+)?"
_PLAIN_TIME = f"{_HOUR}:{_MINUTE}:{_MINUTE}{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_MINUTE})"
_ANY_LEAP = f"{_HOUR}:{_MINUTE}:60{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_MINUTE})"


def _leap_seconds() -> str:
    """Second 60 of the minute that is 23:59 in UTC, for offsets of whole and half hours."""
    options = [f"23:59:60{_FRACTION}(?:[Zz]|[+-]00:00)", f"23:29:60{_FRACTION}-00:30", f"00:29:60{_FRACTION}[+]00:30"]
    for hour in range(1, 24):
        options.append(f"{hour - 1:02}:59:60{_FRACTION}[+]{hour:02}:00")
        options.append(f"{hour:02}:29:60{_FRACTION}[+]{hour:02}:30")
        options.append(f"{23 - hour:02}:59:60{_FRACTION}-{hour:02}:00")
        options.append(f"{23 - hour:02}:29:60{_FRACTION}-{hour:02}:30")
    return "|".join(options)


_TIME = f"(?:{_PLAIN_TIME}|{_leap_seconds()})"
_WIDE_TIME = f"(?:{_PLAIN_TIME}|{_ANY_LEAP})"
_LEAP_NOTE = "a leap second only where the offset is of whole or half hours"
_LEAP_BESIDES = "times that are wrong in nothing but that no leap second is there, as 12:00:60Z"
_DURATION = (
    "P(?:[0-9]+W|(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
    "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))"
)

# -- addresses: RFC 3986 3.2.2 (the same grammar as RFC 2673 and RFC 4291)

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LAST32 = f"(?:{_H16}:{_H16}|{_IPV4})"


def _ipv6() -> str:
    options = [f"(?:{_H16}:){{6}}{_LAST32}", f"::(?:{_H16}:){{5}}{_LAST32}"]
    for before in range(1, 8):
        head = f"(?:{_H16}(?::{_H16}){{0,{before - 1}}})?::" if before > 1 else f"(?:{_H16})?::"
        after = 5 - before
        if after >= 0:
            options.append(head + (f"(?:{_H16}:){{{after}}}" if after else "") + _LAST32)
        else:
            options.append(head + (_H16 if after == -1 else ""))
    return "(?:" + "|".join(options) + ")"


_IPV6 = _ipv6()


def _mail_ipv6() -> str:
    """RFC 5321, 4.1.3: ``::`` stands for two groups or more, and octets may begin with 0."""
    octet = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
    ipv4 = rf"{octet}(?:\.{octet}){{3}}"
    options = [f"{_H16}(?::{_H16}){{7}}", f"{_H16}(?::{_H16}){{5}}:{ipv4}"]
    for before in range(7):
        head = f"{_H16}(?::{_H16}){{{before - 1}}}::" if before else "::"
        tail = f"(?:{_H16}(?::{_H16}){{0,{5 - before}}})?" if before < 6 else ""
        options.append(head + tail)
        if before < 5:
            options.append(head + f"(?:{_H16}:){{0,{4 - before}}}{ipv4}")
    return rf"(?:{ipv4}|[Ii][Pp][Vv]6:(?:{'|'.join(options)}))"


# -- URI: RFC 3986 appendix A; IRI: RFC 3987 2.2

_UCS = (
    r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"\\u{{{plane:x}0000}}-\\u{{{plane:x}fffd}}" for plane in range(1, 14))
    + r"\u{e1000}-\u{efffd}"
).replace(r"\u{e0000}-\u{efffd}", "")
_PRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"


def _identifier(more: str, private: str) -> tuple[str, str]:
    """URI and URI reference, with these further characters."""
    plain, escape, sub = rf"A-Za-z0-9\-._~{more}", "%[0-9A-Fa-f]{2}", "!$&'()*+,;="
    user = f"(?:[{plain}{sub}:]|{escape})*"
    name = f"(?:[{plain}{sub}]|{escape})*"
    future = rf"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~{sub}:]+"
    authority = rf"(?:{user}@)?(?:\[(?:{_IPV6}|{future})\]|{name})(?::[0-9]*)?"
    char = f"(?:[{plain}{sub}:@]|{escape})"
    tail = rf"(?:\?(?:[{plain}{sub}:@/?{private}]|{escape})*)?(?:#(?:[{plain}{sub}:@/?]|{escape})*)?"
    path = f"(?:/{char}*)*"
    hierarchy = f"(?://{authority}{path}|/(?:{char}+{path})?|{char}+{path}|)"
    first = f"(?:[{plain}{sub}@]|{escape})+"
    relative = f"(?://{authority}{path}|/(?:{char}+{path})?|{first}{path}|)"
    absolute = rf"[A-Za-z][A-Za-z0-9+\-.]*:{hierarchy}{tail}"
    return absolute, f"(?:{absolute}|{relative}{tail})"


_URI, _URI_REFERENCE = _identifier("", "")
_IRI, _IRI_REFERENCE = _identifier(_UCS, _PRIVATE)
_VARIABLE = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE = (
    rf"(?:[!#$&-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|%[0-9A-Fa-f]{{2}}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)

# -- hosts: RFC 1123 2.1, RFC 5890; mail: RFC 5321 4.1.2, RFC 6531 3.3

_LDH = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LABEL = f"(?![A-Za-z0-9-]{{2}}--){_LDH}"
_SHORT_LABEL = "(?![A-Za-z0-9-]{2}--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?"
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL}){{0,2}}|{_SHORT_LABEL}(?:\.{_SHORT_LABEL}){{3,7}}"
_U = "a-z0-9\u00df-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
_U_LABEL = f"(?!..--)[{_U}](?:[{_U}-]{{0,12}}[{_U}])?"
_DOT = "[.\u3002\uff0e\uff61]"
_IDN_HOSTNAME = (
    f"{_LABEL}(?:{_DOT}{_LABEL}){{0,2}}|(?:{_SHORT_LABEL}|{_U_LABEL})(?:{_DOT}(?:{_SHORT_LABEL}|{_U_LABEL})){{0,3}}"
)


def _mailbox(more: str) -> str:
    atom = f"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+"
    quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    label = f"[A-Za-z0-9{more}](?:[A-Za-z0-9{more}-]*[A-Za-z0-9{more}])?"
    general = r"(?![Ii][Pp][Vv]6:)[A-Za-z0-9-]*[A-Za-z0-9]:[!-Z^-~]+"
    literal = rf"\[(?:{_mail_ipv6()}|{general})\]"
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|{literal})"


_EMAIL, _IDN_EMAIL = _mailbox(""), _mailbox(r"\u0080-\u{10ffff}")
_POINTER = "(?:/(?:[^~/]|~[01])*)*"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"

# -- regular expressions: ECMA-262 22.2.1 with the u flag, groups nested two deep


def _expressions() -> str:
    ordered = "0-[1-9]|1-9|a-[fz]|A-[FZ]"
    escape = (
        r"\\(?:[dDsSwWfnrtv^$\\.*+?()\[\]{}|/]|0(?![0-9])|c[A-Za-z]|x[0-9A-Fa-f]{2}|u(?:[0-9A-CEFa-cef][0-9A-Fa-f]{3}"
        r"|[Dd][0-7][0-9A-Fa-f]{2})|[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|N|Nd|P|S|Z|Zs|Letter|Alphabetic)\})"
    )
    member = rf"(?:{ordered}|[^\\\]\[\-^]|(?:{escape}))"
    bracket = rf"\[\^?(?:-)?(?:{member}(?!-[^\]])|(?:{ordered}))*(?:-)?\]"
    count = "|".join(f"{{{low},[{low}-9]}}" for low in range(10))
    quantifier = rf"(?:[*+?]|\{{[0-9]+,?\}}|{count}|\{{[0-9],[1-9][0-9]+\}})\??"
    body = ""
    for _ in range(3):
        group = rf"|\((?:\?[:=!]|\?<[=!])?{body}\)" if body else ""
        quantified = rf"|\((?:\?:)?{body}\)(?:{quantifier})?" if body else ""
        plain = rf"(?:[^\\^$.*+?()\[\]{{}}|]|\.|{escape}|{bracket})(?:{quantifier})?"
        body = rf"(?:{plain}|[\^$]|\\[bB]|\|{group}{quantified})*"
    return body


_HOST_NOTE = (
    "no label with hyphens in third and fourth place (A-labels, xn--, among them); more than three labels only up to "
    "eight of at most 30 characters"
)

FORMATS: dict[str, Format] = {
    "date-time": Format(
        _whole(f"{_DATE}[Tt]{_TIME}"),
        "RFC 3339 date-time",
        _whole(f"{_DATE}[Tt]{_WIDE_TIME}"),
        _LEAP_NOTE,
        _LEAP_BESIDES,
    ),
    "date": Format(_whole(_DATE), "RFC 3339 full-date", _whole(_DATE)),
    "time": Format(_whole(_TIME), "RFC 3339 full-time", _whole(_WIDE_TIME), _LEAP_NOTE, _LEAP_BESIDES),
    "duration": Format(_whole(_DURATION), "RFC 3339 appendix A", _whole(_DURATION), since=2019),
    "email": Format(_whole(_EMAIL), "RFC 5321 Mailbox", _whole(_EMAIL)),
    "idn-email": Format(
        _whole(_IDN_EMAIL), "RFC 6531 Mailbox, domain labels by their characters alone", _whole(_IDN_EMAIL)
    ),
    "hostname": Format(
        _whole(_HOSTNAME),
        "RFC 1123 2.1, RFC 5890",
        _whole(rf"{_LDH}(?:\.{_LDH})*"),
        _HOST_NOTE,
        "names of labels of letters, digits and hyphens that are wrong in nothing but their length or a label with "
        "hyphens in third and fourth place",
    ),
    "idn-hostname": Format(
        _whole(_IDN_HOSTNAME),
        "RFC 5890 2.3.2.3",
        narrowed="no label with hyphens in third and fourth place (A-labels, xn--, among them); more than three "
        "labels, or one outside of ASCII, only up to four of at most 30 characters; labels outside of ASCII only of up "
        "to 14 small letters of Latin-1, Greek and Cyrillic, kana, Han and Hangul letters, digits and hyphens",
    ),
    "ipv4": Format(_whole(_IPV4), "RFC 2673 3.2", _whole(_IPV4)),
    "ipv6": Format(_whole(_IPV6), "RFC 4291 2.2", _whole(_IPV6)),
    "uri": Format(_whole(_URI), "RFC 3986 URI", _whole(_URI)),
    "uri-reference": Format(_whole(_URI_REFERENCE), "RFC 3986 URI-reference", _whole(_URI_REFERENCE)),
    "iri": Format(_whole(_IRI), "RFC 3987 IRI", _whole(_IRI)),
    "iri-reference": Format(_whole(_IRI_REFERENCE), "RFC 3987 IRI-reference", _whole(_IRI_REFERENCE)),
    "uri-template": Format(_whole(_TEMPLATE), "RFC 6570 URI-Template", _whole(_TEMPLATE)),
    "uuid": Format(
        _whole("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
        "RFC 4122 UUID",
        _whole("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    ),
    "json-pointer": Format(_whole(_POINTER), "RFC 6901 3", _whole(_POINTER)),
    "relative-json-pointer": Format(
        _whole(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
        "draft-handrews-relative-json-pointer-01 3",
        _whole(f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
    ),
    "regex": Format(
        _whole(_expressions()),
        "ECMA-262 22.2.1",
        narrowed="groups nested two deep; no names, back-references, rare escapes and properties; ranges in "
        "brackets only 0-9, 1-9, a-z, a-f and the like",
    ),
    "byte": Format(_whole(_BASE64), "OpenAPI 3.0 data types; RFC 4648 4", _whole(_BASE64), openapi=True),
}
"""Formats of strings that are enforced; any other name is an annotation, and reported as one."""
