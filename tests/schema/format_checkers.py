"""Formats read character by character from the RFCs: the oracle for compiler/schema/formats.py, sharing nothing.

Leaves out   formats of numbers; limits on whole addresses and mailboxes that stand outside of their grammars (RFC 5321,
             4.5.3.1).
Source       RFC 3339, 5321, 6531, 1123, 5890 to 5893 (by the library ``idna``), 2673, 4291 (by ``ipaddress``), 3986,
             3987, 6570 with erratum 6937, 4122, 6901, draft-handrews-relative-json-pointer-01, 4648, ECMA-262 (by
             ``regress``).
"""

from __future__ import annotations

import calendar
import ipaddress
import string
import unicodedata
from collections.abc import Callable

import idna
import regress

ALPHA, DIGIT, HEX = set(string.ascii_letters), set(string.digits), set(string.hexdigits)
UNRESERVED = ALPHA | DIGIT | set("-._~")
SUB_DELIMITERS = set("!$&'()*+,;=")


def _digits(text: str, count: int | None = None) -> bool:
    return bool(text) and set(text) <= DIGIT and (count is None or len(text) == count)


# -- RFC 3339


def is_date(text: str) -> bool:
    parts = text.split("-")
    if len(parts) != 3 or not all(map(_digits, parts, (4, 2, 2))):
        return False
    year, month, day = map(int, parts)
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year or 400, month)[1]  # the year 0 is a leap year


def is_time(text: str) -> bool:
    if text[-1:] in ("Z", "z"):
        clock, sign, zone = text[:-1], "+", "00:00"
    else:
        clock, sign, zone = text[:-6], text[-6:-5], text[-5:]
    if sign not in ("+", "-") or clock[2:3] + clock[5:6] + zone[2:3] != ":::":
        return False
    if clock[8:] and not (clock[8] == "." and _digits(clock[9:])):
        return False
    fields = [clock[0:2], clock[3:5], clock[6:8], zone[0:2], zone[3:]]
    if not all(_digits(field, 2) for field in fields):
        return False
    hour, minute, second, ahead, behind = map(int, fields)
    if hour > 23 or minute > 59 or second > 60 or ahead > 23 or behind > 59:
        return False
    offset = (ahead * 60 + behind) * (-1 if sign == "-" else 1)
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 23 * 60 + 59


def is_date_time(text: str) -> bool:
    return text[10:11] in ("t", "T") and is_date(text[:10]) and is_time(text[11:])


def is_duration(text: str) -> bool:
    if text[:1] != "P":
        return False
    date, mark, time = text[1:].partition("T")
    if (mark and not time) or not (date or time):
        return False

    def units(part: str) -> str | None:
        found, number = "", ""
        for char in part:
            if char in DIGIT:
                number += char
            elif number:
                found, number = found + char, ""
            else:
                return None
        return None if number else found

    first, second = units(date), units(time)
    if first is None or second is None:
        return False
    if "W" in first:
        return first == "W" and not mark
    return first in ("", "D", "M", "MD", "Y", "YM", "YMD") and second in ("", "S", "M", "MS", "H", "HM", "HMS")


# -- addresses and hosts


def is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(_digits(one) and str(int(one)) == one and int(one) <= 255 for one in parts)


def is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text and text.isascii()


def _is_ldh(label: str) -> bool:
    return bool(label) and set(label) <= ALPHA | DIGIT | {"-"} and label[0] != "-" and label[-1] != "-"


def _is_ascii_label(label: str) -> bool:
    if not _is_ldh(label) or len(label) > 63:
        return False
    if label[2:4] != "--":
        return True
    try:  # of the reserved labels only those of IDNA mean something
        return label[:4].lower() == "xn--" and idna.alabel(idna.ulabel(label)).decode() == label.lower()
    except idna.IDNAError:
        return False


def is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(map(_is_ascii_label, text.split(".")))


def _is_u_label(label: str) -> bool:
    try:
        return not label.isascii() and len(idna.alabel(label)) <= 63
    except (idna.IDNAError, UnicodeError):
        return False


def _is_rtl(label: str) -> bool:
    return any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in label)


def _may_stand_beside_rtl(label: str) -> bool:
    """RFC 5893, 2: in a name with a label from right to left every label meets the rule."""
    try:
        return idna.check_bidi(label, check_ltr=True)
    except idna.IDNAError:
        return False


def is_idn_hostname(text: str) -> bool:
    for dot in "\u3002\uff0e\uff61":
        text = text.replace(dot, ".")
    labels = text.split(".")
    if not all(_is_ascii_label(one) or _is_u_label(one) for one in labels):
        return False
    if any(map(_is_rtl, labels)) and not all(map(_may_stand_beside_rtl, labels)):
        return False
    return sum(len(one if one.isascii() else idna.alabel(one)) + 1 for one in labels) <= 254


# -- RFC 5321 and RFC 6531

ATOM = ALPHA | DIGIT | set("!#$%&'*+-/=?^_`{|}~")


def _mail_address(text: str) -> bool:
    """The inside of an address literal."""
    tag, colon, rest = text.partition(":")
    if not colon:
        parts = text.split(".")
        return len(parts) == 4 and all(_digits(one) and len(one) <= 3 and int(one) <= 255 for one in parts)
    if tag.lower() != "ipv6":
        return (
            bool(tag)
            and set(tag) <= ALPHA | DIGIT | {"-"}
            and tag[-1] != "-"
            and bool(rest)
            and all("!" <= char <= "~" and char not in "[\\]" for char in rest)
        )
    head, dot, _ = rest.partition(".")
    if dot:  # the last part is an IPv4 address, whose octets may begin with 0
        head, _, four = rest.rpartition(":")
        if not _mail_address(four):
            return False
        rest = f"{head}:1:1"
    try:
        ipaddress.IPv6Address(rest)
    except ValueError:
        return False
    groups = [one for one in rest.split(":") if one]
    return "%" not in rest and rest.isascii() and ("::" not in rest or len(groups) <= 6)  # "::" stands for two or more


def _is_mailbox(text: str, unicode: bool) -> bool:
    def more(char: str) -> bool:
        return unicode and char > "\x7f"

    if text[:1] == '"':
        at = 1
        while at < len(text) and text[at] != '"':
            if text[at] == "\\":
                at += 1
                if not " " <= text[at : at + 1] <= "~":
                    return False
            elif not (" " <= text[at] <= "~" or more(text[at])):
                return False
            at += 1
        if text[at : at + 2] != '"@':
            return False
        domain = text[at + 2 :]
    else:
        local, mark, domain = text.partition("@")
        atoms = local.split(".")
        if not mark or not all(one and all(char in ATOM or more(char) for char in one) for one in atoms):
            return False
    if domain[:1] == "[":
        return domain[-1:] == "]" and _mail_address(domain[1:-1])
    # The official suite takes labels outside of ASCII as they are, without the rules of IDNA.
    return all(_is_ldh("".join("x" if more(char) else char for char in one)) for one in domain.split("."))


def is_email(text: str) -> bool:
    return _is_mailbox(text, False)


def is_idn_email(text: str) -> bool:
    return _is_mailbox(text, True)


# -- RFC 3986, RFC 3987, RFC 6570


def is_ucs(char: str) -> bool:
    code = ord(char)
    if code < 0x10000:
        return 0xA0 <= code <= 0xD7FF or 0xF900 <= code <= 0xFDCF or 0xFDF0 <= code <= 0xFFEF
    return code & 0xFFFF <= 0xFFFD and (code < 0xE0000 or 0xE1000 <= code <= 0xEFFFD)


def is_private(char: str) -> bool:
    code = ord(char)
    return 0xE000 <= code <= 0xF8FF or (code >= 0xF0000 and code & 0xFFFF <= 0xFFFD)


def _made_of(text: str, one: Callable[[str], bool]) -> bool:
    """Characters and percent-encoded bytes."""
    at = 0
    while at < len(text):
        if text[at] == "%":
            if not (len(text) >= at + 3 and set(text[at + 1 : at + 3]) <= HEX):
                return False
            at += 3
        elif one(text[at]):
            at += 1
        else:
            return False
    return True


def _is_reference(text: str, ucs: Callable[[str], bool], private: Callable[[str], bool], absolute: bool) -> bool:
    def plain(more: str) -> Callable[[str], bool]:
        return lambda char: char in UNRESERVED or char in SUB_DELIMITERS or char in more or ucs(char)

    rest, mark, fragment = text.partition("#")
    if mark and not _made_of(fragment, plain(":@/?")):
        return False
    rest, mark, query = rest.partition("?")
    if mark and not _made_of(query, lambda char: plain(":@/?")(char) or private(char)):
        return False
    scheme, colon, after = rest.partition(":")
    if colon and scheme[:1] in ALPHA and set(scheme) <= ALPHA | DIGIT | set("+-.") and scheme:
        return _is_hierarchy(after, plain)
    if absolute or not _is_hierarchy(rest, plain):
        return False
    return rest[:1] == "/" or ":" not in rest.split("/")[0]


def _is_hierarchy(text: str, plain: Callable[[str], Callable[[str], bool]]) -> bool:
    """``//authority path``, or a path that does not begin with two slashes."""
    if not text.startswith("//"):
        return _made_of(text, plain(":@/"))
    authority, slash, path = text[2:].partition("/")
    if not _made_of(slash + path, plain(":@/")):
        return False
    user, at, host = authority.rpartition("@")
    if at and not _made_of(user, plain(":")):
        return False
    if host[:1] == "[":
        inside, close, port = host[1:].partition("]")
        if not close or (port and (port[0] != ":" or not set(port[1:]) <= DIGIT)):
            return False
        if inside[:1] in ("v", "V"):
            version, dot, address = inside[1:].partition(".")
            ascii_only = ALPHA | DIGIT | set("-._~:") | SUB_DELIMITERS
            return bool(dot) and bool(version) and set(version) <= HEX and bool(address) and set(address) <= ascii_only
        return is_ipv6(inside)
    name, _, port = host.partition(":")
    return _made_of(name, plain("")) and set(port) <= DIGIT


def _never(char: str) -> bool:
    return False


def is_uri(text: str) -> bool:
    return _is_reference(text, _never, _never, True)


def is_uri_reference(text: str) -> bool:
    return _is_reference(text, _never, _never, False)


def is_iri(text: str) -> bool:
    return _is_reference(text, is_ucs, is_private, True)


def is_iri_reference(text: str) -> bool:
    return _is_reference(text, is_ucs, is_private, False)


def _is_variable(text: str) -> bool:
    name, colon, length = text.partition(":")
    if colon:
        if not (_digits(length) and length[0] != "0" and len(length) <= 4):
            return False
    elif name[-1:] == "*":
        name = name[:-1]
    parts = name.split(".")
    return all(one and _made_of(one, lambda char: char in ALPHA | DIGIT | {"_"}) for one in parts)


def is_uri_template(text: str) -> bool:
    at = literal = 0
    pieces: list[str] = []
    while (at := text.find("{", literal)) >= 0:
        end = text.find("}", at)
        inside = text[at + 1 : end]
        if end < 0:
            return False
        if inside[:1] and inside[0] in "+#./;?&=,!@|":
            inside = inside[1:]
        if not all(map(_is_variable, inside.split(","))):
            return False
        pieces.append(text[literal:at])
        literal = end + 1
    pieces.append(text[literal:])
    return all(
        _made_of(
            one, lambda char: is_ucs(char) or is_private(char) or ("!" <= char <= "~" and char not in '"<>\\^`{|}')
        )
        for one in pieces
    )


# -- the others


def is_uuid(text: str) -> bool:
    parts = text.split("-")
    return [len(one) for one in parts] == [8, 4, 4, 4, 12] and set("".join(parts)) <= HEX


def is_pointer(text: str) -> bool:
    parts = text.split("~")
    return (not text or text[0] == "/") and all(one[:1] in ("0", "1") and one for one in parts[1:])


def is_relative_pointer(text: str) -> bool:
    count = len(text) - len(text.lstrip(string.digits))
    number, rest = text[:count], text[count:]
    return bool(number) and (number == "0" or number[0] != "0") and (rest == "#" or is_pointer(rest))


def is_regex(text: str) -> bool:
    try:
        regress.Regex(text, "u")
    except regress.RegressError:
        return False
    return True


def is_base64(text: str) -> bool:
    body = text.rstrip("=")
    padding = len(text) - len(body)
    return len(text) % 4 == 0 and padding <= 2 and set(body) <= ALPHA | DIGIT | {"+", "/"}


CHECKERS: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "date": is_date,
    "time": is_time,
    "duration": is_duration,
    "email": is_email,
    "idn-email": is_idn_email,
    "hostname": is_hostname,
    "idn-hostname": is_idn_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "uri": is_uri,
    "uri-reference": is_uri_reference,
    "iri": is_iri,
    "iri-reference": is_iri_reference,
    "uri-template": is_uri_template,
    "uuid": is_uuid,
    "json-pointer": is_pointer,
    "relative-json-pointer": is_relative_pointer,
    "regex": is_regex,
}
"""Format of JSON Schema → whether a string has it."""
