"""Golden renderings of conversations with tools, made with Jinja as Hugging Face sets it up.

  tools.jsonl       {"template","identity","text","tools","messages","rendered"}; the text stands in
                    the first row of each template, tools are null without any

`tojson` is json.dumps without escaping what is not ASCII, as transformers defines it. Needs jinja2.
"""
import hashlib
import json
import pathlib

import jinja2.sandbox
from tool_templates import TEMPLATES

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "engine" / "golden"


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def call(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = {"role": "system", "content": " You help.\n"}
USER = {"role": "user", "content": "Where is order 12?\n"}
REPLY = {"role": "assistant", "content": "On its way. "}
CALL = {"role": "assistant", "content": "",
        "tool_calls": [call("find_order", {"number": 12, "café": [1.0, True, None, {}], "x": "a\"\n"})]}
SAID = {"role": "assistant", "content": "Let me look.",
        "tool_calls": [call("find_order", {}), call("stock", {"part": "<|im_end|> 中"})]}
RESULT = {"role": "tool", "content": "{\"state\": \"sent\", \"day\": \"Freitag, früh\"}"}
TOOLS = [
    {"type": "function",
     "function": {"name": "find_order", "description": "Looks up an order – by its number.",
                  "parameters": {"type": "object", "required": ["number"], "properties": {
                      "number": {"type": "integer", "minimum": 0.5, "description": "as printed"},
                      "café": {"type": "array", "items": {}, "default": []}}}}},
    {"type": "function", "function": {"name": "stock", "parameters": {"type": "object",
                                                                      "properties": {}}}},
]
CONVERSATIONS = [
    (None, [USER]), (None, [SYSTEM, USER]), (TOOLS, [USER]), (TOOLS, [SYSTEM, USER]),
    (TOOLS[:1], [SYSTEM, USER, REPLY, USER]),
    (TOOLS, [SYSTEM, USER, CALL, RESULT, REPLY, USER]),
    (TOOLS, [USER, CALL, RESULT, RESULT, REPLY, USER]),
    (TOOLS, [SYSTEM, USER, SAID, RESULT, RESULT, REPLY, USER]),
    (None, [SYSTEM, USER, CALL, RESULT]),
    (None, [USER, REPLY, SYSTEM, USER]),
]


def renders(name, messages):
    """Llama 3.1's takes one call a turn and drops the text beside it: that is refused."""
    return name != "llama3.1" or SAID not in messages


if __name__ == "__main__":
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = tojson
    with open(GOLDEN / "tools.jsonl", "w", encoding="utf-8") as out:
        for template, text in TEMPLATES:
            given = text
            for tools, messages in CONVERSATIONS:
                if not renders(template, messages):
                    continue
                extra = {} if tools is None else {"tools": tools}
                rendered = env.from_string(text).render(
                    messages=messages, add_generation_prompt=True,
                    bos_token="<|begin_of_text|>", **extra)
                row = {"template": template, "identity": hashlib.sha256(text.encode()).hexdigest(),
                       "text": given, "tools": tools, "messages": messages, "rendered": rendered}
                given = None
                out.write(json.dumps(row, separators=(",", ":")) + "\n")
