"""Chat encoding of DeepSeek-V4 (own implementation of the behaviour in model.md 5.3-5.6).  Pure Python.

render(messages, mode) -> prompt string.  parse(text, mode) -> assistant message.
"""
import copy
import json
import re

BAR, LOW = "\uff5c", "\u2581"
BOS = f"<{BAR}begin{LOW}of{LOW}sentence{BAR}>"
EOS = f"<{BAR}end{LOW}of{LOW}sentence{BAR}>"
PAD = f"<{BAR}{LOW}pad{LOW}{BAR}>"
USER, ASSISTANT = f"<{BAR}User{BAR}>", f"<{BAR}Assistant{BAR}>"
THINK, UNTHINK = "<think>", "</think>"
DSML = f"{BAR}DSML{BAR}"
REMINDER = f"<{BAR}latest_reminder{BAR}>"
TASKS = {t: f"<{BAR}{t}{BAR}>" for t in ("action", "query", "authority", "domain", "title", "read_url")}

EFFORT_1 = (
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, "
    "rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, "
    "and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n\n")

EFFORT_2 = (
    "Reasoning Effort: Beyond maximum \u2014 exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the "
    "problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause "
    "rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no "
    "assumption remains unchecked and no error remains undiscovered.\n\n")

# effort name -> prefix; the preview knows only "max", the 0731 release "low", "high" and "max"
EFFORTS = {"preview": {None: "", "high": "", "max": EFFORT_1},
           "0731": {None: "", "low": "", "high": EFFORT_1, "max": EFFORT_2}}

_TOOLS_HEAD = f"""## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<{DSML}tool_calls>" block like the following:

<{DSML}tool_calls>
<{DSML}invoke name="$TOOL_NAME">
<{DSML}parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</{DSML}parameter>
...
</{DSML}invoke>
<{DSML}invoke name="$TOOL_NAME2">
...
</{DSML}invoke>
</{DSML}tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by {THINK}), you MUST output your complete reasoning inside {THINK}...{UNTHINK} BEFORE any tool calls or final response.

Otherwise, output directly after {UNTHINK} with tool calls or final response.

### Available Tool Schemas

"""
_TOOLS_TAIL = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"


def dumps(v):
    return json.dumps(v, ensure_ascii=False)


def tools_text(tools):
    return _TOOLS_HEAD + "\n".join(dumps(t["function"]) for t in tools) + _TOOLS_TAIL


def format_text(schema):
    return "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n" + dumps(schema)


def call_text(call):
    f = call["function"]
    try:
        args = json.loads(f["arguments"])
        items = list(args.items())
    except (ValueError, TypeError, AttributeError):
        items = [("arguments", f["arguments"])]
    lines = []
    for k, v in items:
        s = isinstance(v, str)
        lines.append(f'<{DSML}parameter name="{k}" string="{"true" if s else "false"}">{v if s else dumps(v)}</{DSML}parameter>')
    body = "\n".join(lines)
    return f'<{DSML}invoke name="{f["name"]}">\n{body}\n</{DSML}invoke>'


def calls_text(calls):
    return f"\n\n<{DSML}tool_calls>\n" + "\n".join(call_text(c) for c in calls) + f"\n</{DSML}tool_calls>"


def _merge(messages):
    out = []
    for m in messages:
        m = copy.deepcopy(m)
        role = m.get("role")
        if role not in ("tool", "user"):
            out.append(m)
            continue
        tail = out[-1] if out and out[-1].get("role") == "user" and "content_blocks" in out[-1] else None
        if role == "tool":
            block = {"type": "tool_result", "tool_use_id": m.get("tool_call_id", ""), "content": m.get("content", "")}
            if tail is not None:
                tail["content_blocks"].append(block)
            else:
                out.append({"role": "user", "content_blocks": [block]})
        else:
            block = {"type": "text", "text": m.get("content", "")}
            if tail is not None and tail.get("task") is None:
                tail["content_blocks"].append(block)
            else:
                n = {"role": "user", "content": m.get("content", ""), "content_blocks": [block]}
                n.update({k: m[k] for k in ("task", "wo_eos", "mask") if k in m})
                out.append(n)
    return out


def _order_results(messages):
    order = {}
    for m in messages:
        if m.get("role") == "assistant" and m.get("tool_calls"):
            order = {}
            for i, c in enumerate(m["tool_calls"]):
                cid = c.get("id") or c.get("function", {}).get("id", "")
                if cid:
                    order[cid] = i
        elif m.get("role") == "user" and m.get("content_blocks") and order:
            slots = [i for i, b in enumerate(m["content_blocks"]) if b.get("type") == "tool_result"]
            if len(slots) > 1:
                ranked = sorted((m["content_blocks"][i] for i in slots), key=lambda b: order.get(b.get("tool_use_id", ""), 0))
                for i, b in zip(slots, ranked):
                    m["content_blocks"][i] = b
    return messages


def _last_user(messages):
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].get("role") in ("user", "developer"):
            return i
    return -1


def _drop_old_thinking(messages):
    last, out = _last_user(messages), []
    for i, m in enumerate(messages):
        role = m.get("role")
        if i >= last or role in ("user", "system", "tool", "latest_reminder", "direct_search_results"):
            out.append(m)
        elif role == "assistant":
            out.append({k: v for k, v in m.items() if k != "reasoning_content"})
    return out


def _block_text(b):
    if b.get("type") == "text":
        return b.get("text", "")
    if b.get("type") == "tool_result":
        c = b.get("content", "")
        if isinstance(c, list):
            c = "\n\n".join(p.get("text", "") if p.get("type") == "text" else f"[Unsupported {p.get('type')}]" for p in c)
        return f"<tool_result>{c}</tool_result>"
    return f"[Unsupported {b.get('type')}]"


def _suffixes(m):
    s = ""
    if m.get("tools"):
        s += "\n\n" + tools_text(m["tools"])
    if m.get("response_format"):
        s += "\n\n" + format_text(m["response_format"])
    return s


def _one(i, messages, thinking, drop, prefix):
    m, last = messages[i], _last_user(messages)
    role, out = m.get("role"), ""
    if i == 0 and thinking:
        out += prefix
    if role == "system":
        out += (m.get("content") or "") + _suffixes(m)
    elif role == "developer":
        if not m.get("content"):
            raise ValueError("developer message without content")
        out += USER + m["content"] + _suffixes(m)
    elif role == "user":
        blocks = m.get("content_blocks")
        out += USER + ("\n\n".join(map(_block_text, blocks)) if blocks else (m.get("content") or ""))
    elif role == "latest_reminder":
        out += REMINDER + m["content"]
    elif role == "assistant":
        after_task = i > 0 and messages[i - 1].get("task") is not None
        if thinking and not after_task and (not drop or i > last):
            out += (m.get("reasoning_content") or "") + UNTHINK
        out += m.get("content") or ""
        if m.get("tool_calls"):
            out += calls_text(m["tool_calls"])
        if not m.get("wo_eos", False):
            out += EOS
    else:
        raise ValueError(f"unknown role {role}")
    if i + 1 < len(messages) and messages[i + 1].get("role") not in ("assistant", "latest_reminder"):
        return out
    task = m.get("task")
    if task == "action":
        out += ASSISTANT + (THINK if thinking else UNTHINK) + TASKS[task]
    elif task is not None:
        out += TASKS[task]
    elif role in ("user", "developer"):
        out += ASSISTANT + (THINK if thinking and (not drop or i >= last) else UNTHINK)
    return out


def render(messages, mode, context=None, drop_thinking=True, bos=True, effort=None, release="preview"):
    """Messages (after an already encoded context) -> prompt text."""
    if mode not in ("chat", "thinking") or effort not in EFFORTS[release]:
        raise ValueError("bad mode or effort")
    prefix = EFFORTS[release][effort]
    context = context or []
    msgs = _order_results(context + _merge(messages))[len(context):]
    ctx = _order_results(_merge(context)) if context else []
    full, thinking = ctx + msgs, mode == "thinking"
    drop = drop_thinking and not any(m.get("tools") for m in full)
    first = len(ctx)
    if thinking and drop:
        full = _drop_old_thinking(full)
        first = len(_drop_old_thinking(ctx))
    text = BOS if bos and not ctx else ""
    return text + "".join(_one(i, full, thinking, drop, prefix) for i in range(first, len(full)))


def parse(text, mode):
    """Completion (as generated after <think> or </think>, with EOS) -> message; raises ValueError if malformed."""
    reasoning = ""
    start = f"\n\n<{DSML}tool_calls"
    if mode == "thinking":
        cut = text.find(UNTHINK)
        if cut < 0 or 0 <= text.find(start) < cut:
            raise ValueError("no </think>")
        reasoning, text = text[:cut], text[cut + len(UNTHINK):]
    m = re.fullmatch(r"(?P<c>.*?)(?:" + re.escape(start) + r">\n(?P<calls>.*)\n</" + DSML + r"tool_calls>)?" + re.escape(EOS), text, re.S)
    if not m:
        raise ValueError("no EOS or bad tool block")
    calls = []
    if m["calls"] is not None:
        for part in re.split(r"(?<=invoke>)\n", m["calls"]):
            c = re.fullmatch(r"<" + DSML + r'invoke name="(.*?)">\n(.*?)\n?</' + DSML + r"invoke>", part, re.S)
            if not c:
                raise ValueError("bad invoke")
            args, pos, body = {}, 0, c[2]
            p = re.compile(r"<" + DSML + r'parameter name="(.*?)" string="(true|false)">(.*?)</' + DSML + r"parameter>\n?", re.S)
            while pos < len(body):
                q = p.match(body, pos)
                if not q:
                    raise ValueError("bad parameter")
                args[q[1]] = q[3] if q[2] == "true" else json.loads(q[3])
                pos = q.end()
            calls.append({"type": "function", "function": {"name": c[1], "arguments": dumps(args)}})
    for bad in (BOS, EOS, THINK, UNTHINK, DSML):
        if bad in m["c"] or bad in reasoning:
            raise ValueError("special token in content")
    return {"role": "assistant", "content": m["c"], "reasoning_content": reasoning, "tool_calls": calls}
