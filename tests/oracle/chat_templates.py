"""The chat templates that engine/chat.c knows by the SHA-256 of their text.

Each row: name of the renderer, text. The texts are what model files carry in
tokenizer.chat_template; some carry line breaks, some the two characters \\n inside their
string literals, which Jinja reads alike. Run as a program it prints the rows for engine/chat.c.
"""
import hashlib

ASSISTANT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
TURN = ("{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
        "{% endfor %}")
TURN_SHORT = ("{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}"
              "{% endfor %}")
UNDEFINED = ("{% if not add_generation_prompt is defined %}"
             "{% set add_generation_prompt = false %}{% endif %}")


def with_default(system):
    return ("{% for message in messages %}"
            "{% if loop.first and messages[0]['role'] != 'system' %}"
            "{{ '<|im_start|>system\n" + system + "<|im_end|>\n' }}{% endif %}")


SMOLLM2_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QWEN2_SYSTEM = "You are a helpful assistant."
LOOP = "{% for message in messages %}"
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}"
          "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
          "+ message['content'] | trim + '<|eot_id|>' %}"
          "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
          "{{ content }}{% endfor %}"
          "{% if add_generation_prompt %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")

BASE = [
    ("chatml", LOOP + TURN + ASSISTANT),
    ("chatml", UNDEFINED + LOOP + TURN + ASSISTANT),
    ("chatml", LOOP + TURN_SHORT + ASSISTANT),
    ("smollm2", with_default(SMOLLM2_SYSTEM) + TURN + ASSISTANT),
    ("qwen2", with_default(QWEN2_SYSTEM) + TURN + ASSISTANT),
    ("llama3", LLAMA3),
    ("llama3", UNDEFINED + LLAMA3),
]
TEMPLATES = [(name, text) for name, base in BASE
             for text in (base, base.replace("\n", "\\n"))]

if __name__ == "__main__":
    for name, text in TEMPLATES:
        print(name, hashlib.sha256(text.encode()).hexdigest())
