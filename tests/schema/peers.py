"""What other engines make of each keyword, for docs/json-schema.md: facts from probes of 78 schemas.

Source       run on 2026-11-20: XGrammar 0.2.8 (``strict_mode=False``), llguidance 1.9.1, outlines-core 0.2.14,
             lm-format-enforcer 0.11.3.
Words        ``yes``: as the schema says; ``ignored``: accepts what the keyword forbids; ``narrow``: rejects what it
             allows; ``refused``: an error; ``-``: not probed.
"""

from __future__ import annotations

from toolc.compiler.schema.keywords import KEYWORDS

ENGINES = ("XGrammar 0.2.8", "llguidance 1.9.1", "outlines-core 0.2.14", "lm-format-enforcer 0.11.3")
IGNORED = ("ignored", "refused", "ignored", "ignored")
BOUND = ("yes", "yes", "ignored", "ignored")
LENGTH = ("yes; ignored beside pattern or format", "yes", "yes; ignored beside pattern or format",
          "yes; refused beside pattern or format")  # fmt: skip
PROBED: dict[str, tuple[str, str, str, str]] = {
    "$ref": ("yes; what stands beside it ignored", "yes", "recursion to a depth of 3; what stands beside it ignored",
             "what stands beside it ignored"),
    "type": ("yes", "yes", "yes", "yes"),
    "enum": ("objects and lists in one spelling", "yes", "yes", "values of one type; objects and lists refused"),
    "const": ("objects and lists in one spelling", "yes", "yes", "objects and lists refused"),
    "allOf": ("one branch; more ignored", "yes", "one branch; more narrow", "yes"),
    "anyOf": ("yes; beside properties ignored or narrow", "yes", "yes; beside properties ignored or narrow",
              "yes; beside properties refused"),
    "oneOf": ("as anyOf", "branches that are disjoint, else refused", "as anyOf", "narrow"),
    "not": ("ignored", "refused", "refused", "refused"),
    "if": ("ignored", "refused", "narrow", "refused"),
    "then": ("ignored", "refused", "narrow", "refused"),
    "else": ("ignored", "refused", "narrow", "refused"),
    "properties": ("yes", "yes", "yes", "yes"),
    "required": ("names that properties has; else only {}", "yes", "names that properties has", "yes"),
    "additionalProperties": ("closed where it is missing, by default", "yes", "closed where it is missing",
                             "closed where it is missing"),
    "patternProperties": ("one pattern, without properties", "patterns that are disjoint", "refused or narrow",
                          "ignored or narrow"),
    "propertyNames": ("alone", "refused", "ignored", "ignored"),
    "minProperties": ("open objects", "most", "ignored", "ignored"),
    "maxProperties": ("open objects", "most", "ignored", "ignored"),
    "dependentRequired": ("ignored", "refused", "ignored", "ignored"),
    "unevaluatedProperties": ("ignored", "refused", "yes", "yes"),
    "items": ("yes", "yes", "yes", "yes"),
    "prefixItems": ("yes", "yes", "yes", "ignored"),
    "uniqueItems": IGNORED,
    "contains": IGNORED,
    "minLength": LENGTH,
    "maxLength": LENGTH,
    "pattern": ("read as the whole text: narrow; look-around ignored", "yes; look-around refused",
                "read as the whole text: narrow; look-around refused", "read as the whole text: narrow"),
    "format": ("14 formats; others ignored", "10 formats; others refused", "few formats; others refused", "ignored"),
    "minimum": BOUND,
    "maximum": BOUND,
    "exclusiveMinimum": ("yes; refused as a boolean of draft 4", "yes", "ignored", "ignored"),
    "exclusiveMaximum": ("yes; refused as a boolean of draft 4", "yes", "ignored", "ignored"),
    "multipleOf": ("of integers; ignored for numbers", "yes", "ignored", "ignored"),
}  # fmt: skip


def peer_table() -> str:
    """A row for every keyword that toolc enforces."""
    assert set(PROBED) <= set(KEYWORDS)
    lines = [f"| keyword | toolc | {' | '.join(ENGINES)} |", "|---|---|" + "---|" * len(ENGINES)]
    for name, known in KEYWORDS.items():
        ours = "yes, or refused past its limits" if known.limit else "yes"
        lines.append(f"| `{name}` | {ours} | {' | '.join(PROBED.get(name, ('-',) * len(ENGINES)))} |")
    return "\n".join(lines)
