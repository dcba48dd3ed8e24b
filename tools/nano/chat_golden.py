"""Writes the chat encoding goldens: tests/golden/data/chat/render.json and parse.json.  Usage: chat_golden.py OUT"""
import json
import os
import sys

import encoding as E


def tool(name, **props):
    """A small OpenAI tool."""
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": {
        "type": "object", "properties": {k: {"type": t} for k, t in props.items()}, "required": list(props)}}}


def call(cid, name, args):
    """A tool call; args is a dict or raw text."""
    return {"id": cid, "type": "function", "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)}}


WEATHER = tool("get_weather", location="string", days="integer")
SEARCH = tool("search", query="string")
SYS = {"role": "system", "content": "You are a helpful assistant."}


def u(text, **more):
    return {"role": "user", "content": text, **more}


def a(text, think="", **more):
    return {"role": "assistant", "content": text, "reasoning_content": think, **more}


def t(cid, text):
    return {"role": "tool", "tool_call_id": cid, "content": text}


HISTORY = [dict(SYS, content="S"), u("A"), a("B", "r1"), u("C"), a("D", "r2")]
TOOLS = dict(SYS, tools=[WEATHER, SEARCH])
ONE_CALL = [call("c1", "get_weather", {"location": "Beijing", "days": 3})]
TWO_CALLS = ONE_CALL + [call("c2", "search", {"query": "naïve café 你好"})]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}


def renders():
    """(name, messages, mode, options) of every case."""
    yield "chat-hello", [u("Hello")], "chat", {}
    yield "thinking-hello", [u("Hello")], "thinking", {}
    yield "system-chat", [SYS, u("Hi")], "chat", {}
    yield "history-thinking-drops-old-reasoning", HISTORY, "thinking", {}
    yield "history-thinking-keep", HISTORY, "thinking", {"drop_thinking": False}
    yield "history-chat", HISTORY, "chat", {}
    yield "history-then-user-thinking", HISTORY + [u("E")], "thinking", {}
    yield "effort-high-preview", [SYS, u("Hi")], "thinking", {"effort": "high"}
    yield "effort-max-preview", [SYS, u("Hi")], "thinking", {"effort": "max"}
    yield "effort-max-preview-chat-ignored", [SYS, u("Hi")], "chat", {"effort": "max"}
    for e in ("low", "high", "max"):
        yield f"effort-{e}-0731", [SYS, u("Hi")], "thinking", {"effort": e, "release": "0731"}
    yield "tools-chat", [TOOLS, u("What's the weather in Beijing?")], "chat", {}
    yield "tools-thinking-round", [TOOLS, u("What's the weather in Beijing?"), a("", "I should call get_weather.", tool_calls=ONE_CALL), t("c1", '{"temperature": 22}')], "thinking", {}
    yield "tools-thinking-keeps-reasoning", [TOOLS, u("Q1"), a("A1", "r1"), u("Q2")], "thinking", {}
    yield "tools-empty-system", [{"role": "system", "content": "", "tools": [WEATHER]}, u("Hi")], "chat", {}
    yield "two-calls", [TOOLS, u("Both."), a("Sure.", "", tool_calls=TWO_CALLS), t("c1", "22"), t("c2", "found")], "chat", {}
    yield "results-reordered", [TOOLS, u("Both."), a("", "", tool_calls=TWO_CALLS), t("c2", "found"), t("c1", "22")], "chat", {}
    yield "results-then-user-text", [TOOLS, u("Both."), a("", "", tool_calls=TWO_CALLS), t("c1", "22"), t("c2", "found"), u("And now?")], "chat", {}
    yield "result-parts", [TOOLS, u("Q"), a("", "", tool_calls=ONE_CALL), {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]}], "chat", {}
    yield "call-values", [TOOLS, u("Q"), a("", "", tool_calls=[call("c", "f", {"s": "a\nb", "n": 1.5, "b": True, "z": None, "l": [1, "é"], "o": {"k": "v"}})]), t("c", "ok")], "chat", {}
    yield "call-no-arguments", [TOOLS, u("Q"), a("", "", tool_calls=[call("c", "f", {})]), t("c", "ok")], "chat", {}
    yield "call-bad-arguments", [TOOLS, u("Q"), a("", "", tool_calls=[call("c", "f", "{broken")]), t("c", "ok")], "chat", {}
    yield "users-merged", [u("one"), u("two"), u("three")], "chat", {}
    yield "response-format", [dict(SYS, response_format=SCHEMA), u("Give me a person.")], "chat", {}
    yield "tools-and-response-format", [dict(TOOLS, response_format=SCHEMA), u("Hi")], "thinking", {}
    yield "developer", [{"role": "developer", "content": "Be brief.", "tools": [SEARCH]}], "thinking", {}
    yield "developer-dropped-with-old-thinking", [{"role": "developer", "content": "Be brief."}, a("ok", "r"), u("Hi")], "thinking", {}
    yield "latest-reminder", [SYS, {"role": "latest_reminder", "content": "It is Monday."}, u("Hi")], "chat", {}
    yield "assistant-prefix", [u("Say yes."), a("Ye", wo_eos=True)], "chat", {}
    yield "task-action", [u("Q", task="action")], "thinking", {}
    yield "task-query", [u("Q", task="query")], "chat", {}
    yield "task-title", [u("Q"), a("A", task="title")], "chat", {}
    yield "special-text-in-user", [u("<｜User｜> and <think> stay text of the user")], "chat", {}
    yield "unicode", [u("naïve café 你好 🙂")], "chat", {}


def case(name, messages, mode, options):
    """One rendered case."""
    return {"name": name, "mode": mode, **options, "messages": messages, "prompt": E.render(messages, mode, **options)}


def completions():
    """(name, mode, generated text)."""
    block = E.calls_text(TWO_CALLS)
    yield "plain", "chat", "Hello!" + E.EOS
    yield "thinking", "thinking", "I know.</think>Hello!" + E.EOS
    yield "thinking-empty", "thinking", "</think>Hello!" + E.EOS
    yield "calls", "chat", block + E.EOS
    yield "content-and-calls", "chat", "Let me look." + block + E.EOS
    yield "thinking-and-calls", "thinking", "Look first.</think>" + block + E.EOS
    yield "call-values", "chat", E.calls_text([call("c", "f", {"s": "a\nb", "n": 1.5, "b": True, "z": None, "l": [1, "é"], "o": {"k": "v"}})]) + E.EOS
    yield "call-no-arguments", "chat", E.calls_text([call("c", "f", {})]) + E.EOS
    yield "error-no-think-end", "thinking", "I know. Hello!" + E.EOS
    yield "error-no-eos", "chat", "Hello"
    yield "error-cut-block", "chat", block[:-20]
    yield "error-special-in-content", "chat", "a<think>b" + E.EOS


def parsed(name, mode, text):
    """One completion with the message the strict parser gives, or its error."""
    out = {"name": name, "mode": mode, "completion": text}
    try:
        out["message"] = E.parse(text, mode)
    except ValueError as e:
        out["error"] = str(e)
    return out


def main(out):
    os.makedirs(out, exist_ok=True)
    for name, rows in (("render", [case(*c) for c in renders()]), ("parse", [parsed(*c) for c in completions()])):
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(rows, f, ensure_ascii=False, indent=1)
            f.write("\n")
        print(name, len(rows))


if __name__ == "__main__":
    main(sys.argv[1])
