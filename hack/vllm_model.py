"""Makes the folder of a tiny language model for a real vLLM: vllm_model.py FOLDER.

There are no weights in it: `vllm serve FOLDER --load-format dummy` draws them. It says nothing sensible, and everything
around it is real: batches, KV cache, chat template, streams, usage. It never ends by itself: no token means the end, so
that an answer has exactly max_tokens tokens. Needs the package tokenizers.
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

VOCABULARY = 320
POSITIONS = 4096
ROLES = ["<|system|>", "<|user|>", "<|assistant|>"]

CHAT = """{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}\
{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def tokenizer():
    """Bytes as tokens, without merges: every text can be written, and a token is a letter or so."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    # The rest of the vocabulary are words: a model without weights says any of its tokens.
    words = [f"w{i}" for i in range(VOCABULARY - len(letters) - len(ROLES))]
    made = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(letters + words)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True) for token in ROLES])
    assert made.get_vocab_size() == VOCABULARY
    return made


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content, indent=1) + "\n")


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
made = tokenizer()
made.save(str(folder / "tokenizer.json"))
write(folder, "tokenizer_config.json", {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": POSITIONS,
    "chat_template": CHAT,
})
write(folder, "generation_config.json", {"temperature": 1.0})
# Last: hack/vllm.sh takes it for the sign that all is there.
write(folder, "config.json", {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": POSITIONS,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
})
