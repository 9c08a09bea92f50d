"""A folder with a tiny random model of transformers and the built-in tokenizer, for examples that load a model."""

from __future__ import annotations

import json
from pathlib import Path

TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_model(folder: Path) -> Path:
    """Write the model and its tokenizer."""
    import torch
    import transformers

    from toolc.compiler.vocab.builtin import builtin_path
    from toolc.compiler.vocab.files import read_content

    data = json.loads(read_content(builtin_path()).data)
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    ids = {one["content"]: one["id"] for one in data["added_tokens"]}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE})
    )
    torch.manual_seed(0)
    size = max(*data["model"]["vocab"].values(), *ids.values()) + 1
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=1024, eos_token_id=ids["<|end|>"], bos_token_id=None,
        pad_token_id=ids["<|end|>"],
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder
