"""Chat templates, cut down to what they write for a question, a call and the prompt of an answer; by hand, after those
that the checkpoints hold.

A row holds an id, the template, and which parser of vLLM and which protocol its models go with.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A template."""

    id: str
    template: str
    parser: str
    protocol: str


_CHATML = """{%- if tools %}<|im_start|>system
# Tools
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "assistant" and message.tool_calls %}
<|im_start|>assistant
{%- for tool_call in message.tool_calls %}
{%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
CALL
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
THINK{%- endif %}"""

_HERMES = (
    r"""{{- '\n<tool_call>\n{"name": "' }}{{ tool_call.name }}{{- '", "arguments": ' }}"""
    r"""{{- tool_call.arguments if tool_call.arguments is string else tool_call.arguments | tojson }}"""
    r"""{{- '}\n</tool_call>' }}"""
)
_CODER = r"""{{- '\n<tool_call>\n<function=' + tool_call.name + '>\n' }}
{%- for name, value in tool_call.arguments | items %}
{{- '<parameter=' + name + '>\n' }}{{ value if value is string else value | tojson }}{{- '\n</parameter>\n' }}
{%- endfor %}{{- '</function>\n</tool_call>' }}"""
_LLAMA = """{{- bos_token }}
{%- for message in messages %}
{%- if message.tool_calls %}
{%- if message.tool_calls | length != 1 %}{{- raise_exception("one call at once") }}{%- endif %}
{%- set call = message.tool_calls[0].function %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{{- '{"name": "' + call.name + '", ' }}{{- '"parameters": ' }}{{- call.arguments | tojson }}
{{- '}' }}{{- '<|eot_id|>' }}
{%- else %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content + '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""
_MISTRAL = """{{- bos_token }}
{%- for message in messages %}
{%- if message.tool_calls %}
{{- "[TOOL_CALLS] [" }}
{%- for call in message.tool_calls %}
{%- if call.id | length != 9 %}{{- raise_exception("ids have nine characters") }}{%- endif %}
{{- '{"name": "' + call.function.name + '", "arguments": ' }}{{ call.function.arguments | tojson }}
{{- ', "id": "' + call.id + '"}' }}
{%- endfor %}{{- "]" + eos_token }}
{%- elif message.role == "user" %}{{- "[INST] " + message.content + "[/INST]" }}
{%- endif %}
{%- endfor %}"""
_V11 = """{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' }}{{ call.function.arguments | tojson }}"""
_MISTRAL_V11 = (
    _MISTRAL.partition("{{- '{")[0].replace('{{- "[TOOL_CALLS] [" }}\n', "")
    + _V11
    + "{%- endfor %}"
    + _MISTRAL.partition("{%- endfor %}")[2].replace('"]" + eos_token', "eos_token")
)
_DEEPSEEK = """{%- for message in messages %}
{%- if message.tool_calls %}{{- '<｜Assistant｜></think><｜tool▁calls▁begin｜>' }}
{%- for call in message.tool_calls %}
{{- '<｜tool▁call▁begin｜>' + call.function.name + '<｜tool▁sep｜>' + call.function.arguments + '<｜tool▁call▁end｜>' }}
{%- endfor %}{{- '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}
{%- else %}{{- '<｜User｜>' + message.content }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜></think>' }}{%- endif %}"""
_GLM = """[gMASK]<sop>
{%- for message in messages %}
{%- if message.tool_calls %}<|assistant|>
<think></think>
{%- for call in message.tool_calls %}{{- '\\n<tool_call>' + call.function.name }}
{% for key, value in call.function.arguments.items() %}
<arg_key>{{ key }}</arg_key>
<arg_value>{{ value if value is string else value | tojson }}</arg_value>
{% endfor %}
</tool_call>{%- endfor %}
{%- else %}<|user|>
{{ message.content }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{%- endif %}"""
_GENERATION = _CHATML.replace("<|im_start|>assistant\n{%- for", "<|im_start|>assistant{% generation %}\n{%- for")
_GENERATION = _GENERATION.replace(
    "{%- endfor %}<|im_end|>\n{% else %}", "{%- endfor %}<|im_end|>\n{% endgeneration %}{% else %}"
)

TEMPLATES = [
    Row("qwen2.5", _CHATML.replace("CALL", _HERMES).replace("THINK", ""), "hermes", "hermes"),
    Row("qwen3-thinking", _CHATML.replace("CALL", _HERMES).replace("THINK", "<think>\n"), "qwen3_json", "hermes"),
    Row("marked", _GENERATION.replace("CALL", _HERMES).replace("THINK", ""), "hermes", "hermes"),
    Row("qwen3-coder", _CHATML.replace("CALL", _CODER).replace("THINK", ""), "qwen3_coder", "qwen3_coder"),
    Row("llama3.1", _LLAMA, "llama3_json", "llama3"),
    Row("mistral-v3", _MISTRAL, "mistral", "mistral"),
    Row("mistral-v11", _MISTRAL_V11, "mistral", "mistral_v11"),
    Row("deepseek-v3.1", _DEEPSEEK, "deepseek_v31", "deepseek_v31"),
    Row("glm-4.5", _GLM, "glm45", "glm45"),
]
NO_TOOLS = _CHATML.partition("{%- if message.role ==")[0] + "{{ message.content }}{%- endfor %}"
