"""A text format of one's own for calls, in own_protocol.lark: ``python own_protocol.py [TOKENIZER]``."""

import sys
from pathlib import Path

from toolc.compiler import Options, compile_tools, read_spec
from toolc.runtime import Reader, explain, read_calls, write_calls

PROTOCOL = Path(__file__).with_name("own_protocol.lark")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main(tokenizer: str = "builtin") -> None:
    bundle = compile_tools(read_spec([add]).document, tokenizer, options=Options(protocol=PROTOCOL)).bundle
    text = '-> add({"a": 1, "b": 2})\n-> add({"a": 3, "b": 4})'
    for call in read_calls(bundle, text):
        print(f"{call.name} of {call.typed(add)} is {add(**call.typed(add))}")
    written = write_calls(Reader(bundle), [("add", {"a": 5, "b": 6})])
    print(written.text.decode() if written is not None else "no such call")
    print(explain(bundle, '-> add({"a": "one'))


if __name__ == "__main__":
    main(*sys.argv[1:])
