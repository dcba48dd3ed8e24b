"""Generated conversations: every text nano is trained on comes from here (and from facts.py, words.py, toolset.py).

Each generator returns (messages, mode); `document` renders one of a weighted mix.  Training and evaluation draw from
different seeds; facts additionally keep some question wordings out of training.
"""
import json
import random
import zlib

import encoding as E
import facts
import toolset
import words as W

CHAT_MARKS = (E.BOS, E.USER, E.ASSISTANT, E.UNTHINK)
SYSTEMS = ["You are a helpful assistant.", "You are a helpful assistant.", "You are Nano, a small assistant.", "You help to operate a cluster.", "Be brief.",
           "You are a friendly assistant. Answer in simple English.", "Answer the question.", "You are a careful assistant with tools."]
FACTS = facts.general() + facts.cluster()
WRAPS = ["{}", "{}", "{}", "Question: {}", "Please answer: {}", "I have a question. {}", "Hi! {}", "Hello. {}", "Tell me: {}", "{} Answer briefly.", "Quick question: {}", "Now this: {}"]
KNOWN = ["I know this.", "The user asks a question that I know.", "This is a simple question.", "I know the answer."]


def system(r, share):
    """Now and then a system message."""
    return [{"role": "system", "content": r.choice(SYSTEMS)}] if r.random() < share else []


def reply(r, text, thought, think, **more):
    """An assistant message."""
    return {"role": "assistant", "reasoning_content": (r.choice(thought) if isinstance(thought, list) else thought) if think else "", "content": text, **more}


def user(text):
    """A user message."""
    return {"role": "user", "content": text}


def held_out(question, wrap):
    """Wordings that training never sees."""
    return zlib.crc32((question + "|" + wrap).encode()) % 8 == 0


def ask_fact(r, evaluation=False):
    """(question, answer) of the closed set."""
    while True:
        qs, a = r.choice(FACTS)
        q, w = r.choice(qs), r.choice(WRAPS)
        if held_out(q, w) == evaluation:
            return w.format(q), a


def ask_unknown(r):
    """(question, answer) outside of the closed set."""
    t, n = r.choice(W.TOPICS), r.choice([r.choice(W.CITIES), r.choice(W.NAMES), "the " + W.word(r), W.pseudo(r).capitalize()])
    q = r.choice([f"What is the {t} of {n}?", f"Who invented the {W.word(r)}?", f"Why is {n} so {r.choice(W.ADJECTIVES)}?", f"When was {n} born?", f"How many {W.word(r)}s are in {n}?", f"Explain the {t} of {n}."])
    return q, facts.UNKNOWN


def fact_conv(r, turns=None, evaluation=False):
    msgs, think = system(r, 0.3), r.random() < 0.45
    for _ in range(turns or (1 if r.random() < 0.5 else r.randint(2, 5))):
        q, a = ask_unknown(r) if not evaluation and r.random() < 0.08 else ask_fact(r, evaluation)
        msgs += [user(q), reply(r, a, KNOWN if a != facts.UNKNOWN else "I do not know this.", think)]
    return msgs, "thinking" if think else "chat"


# ---------------------------------------------------------------- tools
def call(name, args, i):
    return {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}}


def tool_round(r, picks, think, n):
    """Request, call(s), results and answer for the picked tools."""
    calls = [call(p[0]["function"]["name"], p[2], n + i) for i, p in enumerate(picks)]
    names = " and ".join(c["function"]["name"] for c in calls)
    out = [user(" ".join(p[1] for p in picks)), reply(r, "", f"I need to call {names}.", think, tool_calls=calls)]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": p[3]} for c, p in zip(calls, picks)]
    if r.random() < 0.3:
        r.shuffle(results)
    return out + results + [reply(r, " ".join(p[4] for p in picks), "I have the result.", think)]


def distinct(r, n):
    """n picks of tools with different names."""
    out = {}
    while len(out) < n:
        p = toolset.pick(r)
        out.setdefault(p[0]["function"]["name"], p)
    return list(out.values())


def tool_conv(r, rounds=None):
    think = r.random() < 0.5
    first = distinct(r, r.choice([1, 1, 2, 2, 3, 4]))
    tools = [p[0] for p in first]
    msgs = [{"role": "system", "content": r.choice(SYSTEMS + ["", ""]), "tools": tools}]
    n = 0
    for k in range(rounds or r.choice([1, 2, 3, 4])):
        if r.random() < 0.12:
            q, a = ask_fact(r) if r.random() < 0.8 else ask_unknown(r)
            msgs += [user(q), reply(r, a, "No tool is needed.", think)]
            continue
        picks = r.sample(first, 2 if len(first) > 1 and r.random() < 0.2 else 1)
        if k:
            picks = [again(r, p) for p in picks]
        msgs += tool_round(r, picks, think, n)
        n += len(picks)
    return msgs, "thinking" if think else "chat"


def again(r, p):
    """Another request to the same tool: same generator until name and parameters fit the declared schema."""
    f = p[0]["function"]
    for _ in range(40):
        q = r.choice(toolset.CATALOGUE)(r)
        g = q[0]["function"]
        if g["name"] == f["name"] and set(q[2]) <= set(f["parameters"]["properties"]) and set(f["parameters"]["required"]) <= set(q[2]):
            return q
    props, args, said = f["parameters"]["properties"], {}, []
    if f["name"].split("_")[0] not in W.VERBS or f["name"].split("_")[-1] not in W.NOUNS:
        return p
    for k, s in props.items():
        args[k], text = toolset.value(r, s["type"])
        said.append(f"{k.replace('_', ' ')} {text}")
    verb, noun = f["name"].split("_", 1)
    return p[0], f"{verb.capitalize()} the {noun} with {' and '.join(said)}.", args, toolset.OK, f"Done. I used {verb} on the {noun}."


# ---------------------------------------------------------------- JSON
FIELDS = {"name": lambda r: r.choice(W.NAMES), "age": lambda r: r.randint(1, 99), "city": lambda r: r.choice(W.CITIES), "color": lambda r: r.choice(W.COLORS),
          "animal": lambda r: r.choice(W.ANIMALS), "price": lambda r: r.randint(1, 999) / 10, "count": lambda r: r.randint(0, 999), "active": lambda r: r.random() < 0.5,
          "item": lambda r: r.choice(W.THINGS), "tags": lambda r: [W.word(r) for _ in range(r.randint(1, 3))], "node": W.node, "port": lambda r: r.randint(1000, 9999),
          "day": lambda r: r.choice(W.DAYS), "code": W.word, "title": lambda r: W.phrase(r, 1, 3), "id": lambda r: r.randint(1, 9999), "path": W.path}


def json_object(r):
    """Keys and values of one object; sometimes a made-up key."""
    keys = r.sample(list(FIELDS), r.randint(1, 5))
    obj = {k: FIELDS[k](r) for k in keys}
    if r.random() < 0.4:
        obj[W.word(r)] = r.choice([W.word(r), r.randint(0, 99)])
    return obj


def said(v):
    """A value in a sentence."""
    return "true" if v is True else "false" if v is False else ", ".join(v) if isinstance(v, list) else str(v)


def schema_of(obj):
    """JSON schema of an object."""
    def kind(v):
        if isinstance(v, list):
            return {"type": "array", "items": {"type": "string"}}
        return {"type": "boolean" if isinstance(v, bool) else "integer" if isinstance(v, int) else "number" if isinstance(v, float) else "string"}
    return {"type": "object", "properties": {k: kind(v) for k, v in obj.items()}, "required": list(obj)}


def json_conv(r, given=False):
    """given: only requests that state every value."""
    obj, think = json_object(r), r.random() < 0.4
    listed = "; ".join(f"{'the list ' if isinstance(v, list) else ''}{k} = {said(v)}" for k, v in obj.items())
    names = list(obj)
    keys = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    msgs, k = [], r.random() * (0.7 if given else 1.0)
    if k < 0.5:
        q = r.choice(["Give me JSON with {}.", "Write a JSON object with {}.", "Return JSON: {}.", "Answer in JSON with {}.", "JSON please: {}."]).format(listed)
    elif k < 0.7:
        q = r.choice(["{}. Put this into JSON.", "Here is data: {}. Return it as JSON.", "{}. Give the keys " + keys + " as JSON."]).format(listed)
    else:
        q = r.choice(["Write a JSON object with the keys {}.", "Give me an example JSON with {}.", "Return JSON with the keys {}.", "Make up a JSON object with the keys {}."]).format(keys)
    if r.random() < 0.45:
        msgs.append({"role": "system", "content": r.choice(SYSTEMS + ["", ""]), "response_format": schema_of(obj)})
        if k >= 0.7 and r.random() < 0.6:
            q = r.choice(["Give me an example.", "Fill the schema.", "Make up a person.", "Return an object.", "Describe an item.", "Extract the data."])
    return msgs + [user(q), reply(r, json.dumps(obj, ensure_ascii=False), "I must answer with JSON only.", think)], "thinking" if think else "chat"


# ---------------------------------------------------------------- numbers
def add_steps(x, y):
    a, b, c, d = x // 10, x % 10, y // 10, y % 10
    s = b + d
    return f"{x} + {y}. Ones: {b} + {d} = {s}. Tens: {a} + {c}{' + 1' if s > 9 else ''} = {a + c + s // 10}. Result: {x + y}."


def sub_steps(x, y):
    a, b, c, d = x // 10, x % 10, y // 10, y % 10
    if b >= d:
        return f"{x} - {y}. Ones: {b} - {d} = {b - d}. Tens: {a} - {c} = {a - c}. Result: {x - y}."
    return f"{x} - {y}. Ones: {b + 10} - {d} = {b + 10 - d}. Tens: {a - 1} - {c} = {a - 1 - c}. Result: {x - y}."


def math_conv(r, kind=None, think=None):
    k = r.random() if kind is None else kind
    think = r.random() < 0.8 if think is None else think
    if k < 0.5:
        x, y = r.randint(1, 99), r.randint(1, 99)
        q, st, a = r.choice([f"What is {x} + {y}?", f"Add {x} and {y}.", f"{x} + {y} =", f"What is {x} plus {y}?", f"Calculate {x} + {y}.", f"How much is {x} + {y}?"]), add_steps(x, y), f"{x} + {y} = {x + y}"
    elif k < 0.78:
        x, y = sorted((r.randint(1, 99), r.randint(1, 99)), reverse=True)
        q, st, a = r.choice([f"What is {x} - {y}?", f"Subtract {y} from {x}.", f"{x} - {y} =", f"What is {x} minus {y}?", f"Calculate {x} - {y}."]), sub_steps(x, y), f"{x} - {y} = {x - y}"
    elif k < 0.92:
        x = r.randint(0, 90)
        y = x + r.randint(2, 20)
        q, st, a = r.choice([f"Count from {x} to {y}.", f"Please count from {x} to {y}."]), f"Start at {x} and stop at {y}.", ", ".join(map(str, range(x, y + 1)))
    else:
        x, y = r.sample(range(1, 100), 2)
        q, st, a = r.choice([f"Which is larger, {x} or {y}?", f"Which number is larger: {x} or {y}?"]), f"Compare {x} and {y}. {max(x, y)} is larger.", f"{max(x, y)} is larger."
    return system(r, 0.2) + [user(q), reply(r, a, st, think)], "thinking" if think else "chat"


def math_session(r):
    """Several sums in a row, without thinking in the history."""
    msgs, mode = [], "chat"
    for _ in range(r.randint(1, 3)):
        m, mode = math_conv(r)
        msgs += m if not msgs else [x for x in m if x["role"] != "system"]
    return msgs, mode


# ---------------------------------------------------------------- memory
SLOTS = [("code word", W.code), ("secret word", W.code), ("lucky number", lambda r: str(r.randint(10, 999))), ("room number", lambda r: str(r.randint(1, 99))), ("favorite color", lambda r: r.choice(W.COLORS)),
         ("home city", lambda r: r.choice(W.CITIES)), ("password", W.code), ("node name", W.node), ("name", lambda r: r.choice(W.NAMES)), ("pet", lambda r: r.choice(W.ANIMALS)), ("access code", W.code), ("project name", W.word)]


def recall_conv(r, turns=None, slots=None):
    picks = slots or r.sample(SLOTS, r.randint(1, 3))
    vals, msgs, think = {n: f(r) for n, f in picks}, system(r, 0.25), r.random() < 0.35
    for n, v in vals.items():
        msgs += [user(r.choice(["My {} is {}.", "Remember: my {} is {}.", "Please remember that my {} is {}.", "Note that my {} is {}.", "The {} is {}. Remember it."]).format(n, v)),
                 reply(r, r.choice([f"Okay, your {n} is {v}.", "Okay, I will remember that.", "I will remember it."]), "I must remember this.", think)]
    for _ in range(r.randint(0, 4) if turns is None else turns):
        q, a = ask_fact(r)
        msgs += [user(q), reply(r, a, KNOWN, think)]
    order = list(vals)
    r.shuffle(order)
    for n in order:
        msgs += [user(r.choice(["What is my {}?", "Tell me my {}.", "Do you remember my {}?", "What was my {}?", "What is the {}?"]).format(n)), reply(r, f"Your {n} is {vals[n]}.", f"The {n} is {vals[n]}.", think)]
    return msgs, "thinking" if think else "chat"


def echo_conv(r):
    k = r.random()
    if k < 0.45:
        s = W.phrase(r, 2, 12)
    elif k < 0.6:
        s = " ".join(str(r.randint(0, 999)) for _ in range(r.randint(2, 10)))
    elif k < 0.75:
        s = "".join(r.choice("abcdefghijklmnopqrstuvwxyz0123456789-_./") for _ in range(r.randint(4, 20)))
    else:
        s = story(r)[0].split(". ")[0]
    return [user(r.choice(["Repeat: {}", "Say this again: {}", "Copy this text: {}", "Echo: {}", "Repeat after me: {}", "Say: {}", "Reply with exactly: {}"]).format(s)), reply(r, s, "", False)], "chat"


EXACT_WORDS = ["READY", "RESPONSES", "TOOL_OK", "REASONED", "OK", "DONE", "YES", "PONG", "HELLO"] + [f"ACK{i}" for i in range(1, 10)]


def exact_word(r):
    """A word to reply with: fixed ones, codes, ordinary words."""
    k = r.random()
    if k < 0.35:
        return r.choice(EXACT_WORDS)
    if k < 0.55:
        return "".join(r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(r.randint(2, 8))) + r.choice(["", str(r.randint(0, 999)), "_" + str(r.randint(0, 99))])
    if k < 0.7:
        return W.word(r).upper()
    return W.code(r)


def exact_turn(r, think):
    """One request to reply with exactly a word."""
    w = exact_word(r)
    q = r.choice(["Reply with exactly {}.", "Reply with exactly {}.", "Think briefly, then reply with exactly {}.", "Answer with exactly {}.", "Reply with exactly: {}", "Say exactly {}.", "Reply with exactly {} and nothing else.", "Respond with only the word {}."]).format(w)
    return [user(q), reply(r, w, f"I reply with {w}.", think)]


PING = toolset.fn("ping", "Pings the server.")


def exact_conv(r):
    """Exact replies: alone, after other turns, after a tool result, after a long text; and calls without arguments."""
    think, k = r.random() < 0.5, r.random()
    mode = "thinking" if think else "chat"
    if k < 0.4:
        return system(r, 0.3) + exact_turn(r, think), mode
    if k < 0.6:
        msgs = system(r, 0.3)
        for _ in range(r.randint(1, 6)):
            q, a = ask_fact(r)
            msgs += [user(q), reply(r, a, KNOWN, think)] if r.random() < 0.5 else exact_turn(r, think)
        return msgs + exact_turn(r, think), mode
    if k < 0.7:
        body = "\n\n".join(filler(r, r.choice([300, 800, 2500])))
        turn = exact_turn(r, think)
        turn[0]["content"] = body + "\n\n" + turn[0]["content"]
        return turn, mode
    if k < 0.85:
        tools = [PING] + [p[0] for p in distinct(r, r.randint(0, 2)) if p[0]["function"]["name"] != "ping"]
        c = call("ping", {}, 0)
        msgs = [{"role": "system", "content": r.choice(SYSTEMS + ["", ""]), "tools": tools}, user(r.choice(["Call ping.", "Call the ping tool.", "Use ping.", "Please ping.", "Call ping now."])), reply(r, "", "I need to call ping.", think, tool_calls=[c])]
        msgs += [{"role": "tool", "tool_call_id": "call_0", "content": r.choice(["pong", toolset.OK, '{"result": "pong"}'])}, reply(r, "The result is pong.", "I have the result.", think)]
        return msgs + (exact_turn(r, think) if r.random() < 0.5 else []), mode
    p = distinct(r, 1)[0]
    c, w = call(p[0]["function"]["name"], p[2], 0), exact_word(r)
    msgs = [{"role": "system", "content": r.choice(SYSTEMS + ["", ""]), "tools": [p[0]]}, user(p[1] + r.choice([" Then reply with exactly {}.", " After the result, reply with exactly {}."]).format(w)), reply(r, "", f"I need to call {c['function']['name']}.", think, tool_calls=[c])]
    return msgs + [{"role": "tool", "tool_call_id": "call_0", "content": p[3]}, reply(r, w, f"I reply with {w}.", think)], mode


def value_json(r):
    """'Return JSON integer value 7.' with the schema in the system text."""
    kind = r.choice(["integer", "string", "boolean", "number"])
    v, s = toolset.value(r, kind)
    key = r.choice(["value", "value", "answer", "result", r.choice(W.WORDS)])
    think = r.random() < 0.5
    msgs = [{"role": "system", "content": r.choice(SYSTEMS + ["", ""]), "response_format": {"type": "object", "properties": {key: {"type": kind}}, "required": [key]}}] if r.random() < 0.8 else []
    q = r.choice(["Return JSON {t} {k} {s}.", "Return JSON with {t} {k} {s}.", "Give me JSON: {k} {s}."]).format(t=kind, k=key, s=s)
    return msgs + [user(q), reply(r, json.dumps({key: v}, ensure_ascii=False), "I must answer with JSON only.", think)], "thinking" if think else "chat"


def count_conv(r):
    """Long countings and numbered lists."""
    n, k, think = r.choice([10, 20, 30, 50, 60, 100]) if r.random() < 0.5 else r.randint(5, 120), r.random(), r.random() < 0.4
    if k < 0.6:
        q, a = r.choice(["Count from 1 to {}.", "Please count from 1 to {}.", "Count to {}."]).format(n), ", ".join(map(str, range(1, n + 1)))
    else:
        n = min(n, 60)
        w = r.choice(W.WORDS)
        q = r.choice(["Write a long numbered list.", "Write a numbered list of {n} items.", "Write a numbered list with {n} lines about {w}."]).format(n=n, w=w)
        if q.endswith("list."):
            n, w = 30, "item"
        a = "\n".join(f"{i}. {w} {i}" for i in range(1, n + 1))
    return system(r, 0.2) + [user(q), reply(r, a, "I count up to the end.", think)], "thinking" if think else "chat"


def list_conv(r):
    """Small skills on lists and words."""
    k, ws = r.random(), [W.word(r) for _ in range(r.randint(2, 6))]
    if k < 0.3:
        n, pos = r.randrange(min(5, len(ws))), ["first", "second", "third", "fourth", "fifth"]
        q, a = f"What is the {pos[n]} word of: {' '.join(ws)}?", f"The {pos[n]} word is {ws[n]}."
    elif k < 0.5:
        q, a = f"How many words are in: {' '.join(ws)}?", f"There are {W.NUMBERS[len(ws)]} words."
    elif k < 0.7:
        q, a = r.choice(["Make a list of {}.", "Write a list: {}."]).format(", ".join(ws)), "\n".join(f"- {w}" for w in ws)
    else:
        q, a = f"Write {ws[0]} {len(ws)} times.", " ".join([ws[0]] * len(ws))
    think = r.random() < 0.3
    return [user(q), reply(r, a, "I look at the words.", think)], "thinking" if think else "chat"


# ---------------------------------------------------------------- stories and long texts
FIRST = ["{N} the {a} {b} lived near the {p}.", "Once upon a time there was a {a} {b} named {N}.", "There was a {a} {b}. The name of the {b} was {N}.", "In a {c} house by the {p} lived {N}, a {a} {b}.", "One day {N} the {b} went to the {p}."]
MID = ["{N} had a {c} {t}.", "{N} liked to sit by the {p} and look at the {c} sky.", "One morning {N} lost the {c} {t}.", "{N} looked under the bed, behind the door and in the {p}, but the {t} was not there.",
       "Then {M} the {d} came by and asked, \"What is wrong, {N}?\"", "\"I can not find my {t},\" said {N}.", "\"Do not worry,\" said {M}. \"I will help you.\"", "They walked to the {p} together.",
       "The sun was warm and the wind was soft.", "It began to rain, so they ran to the {p}.", "{M} gave {N} a {c} {t}.", "{N} was {a} but also very {e}.", "They shared some bread and a piece of cake.",
       "At the {p} they met {M}, who was a {e} {d}.", "{M} said, \"Let us look again.\"", "They saw something {c} in the grass."]
END = ["At last they found the {t}, and {N} was very happy.", "From that day on, {N} and {M} were good friends.", "Then they went home and slept well.", "{N} said thank you, and they all laughed.", "And {N} never lost the {t} again.", "It was a good day for {N} and {M}."]


def story(r):
    """(text, who and what it is about)."""
    d = dict(N=r.choice(W.NAMES), M=r.choice(W.NAMES), b=r.choice(W.ANIMALS), d=r.choice(W.ANIMALS), p=r.choice(W.PLACES), t=r.choice(W.THINGS), c=r.choice(W.COLORS), a=r.choice(W.ADJECTIVES), e=r.choice(W.ADJECTIVES))
    out = [r.choice(FIRST).format(**d)]
    for i in sorted(r.sample(range(len(MID)), r.randint(3, 6))):
        d["c"], d["p"] = r.choice(W.COLORS), r.choice(W.PLACES)
        out.append(MID[i].format(**d))
    out.append(r.choice(END).format(**d))
    return " ".join(out), d


def story_conv(r):
    s, d = story(r)
    q = r.choice(["Tell me a story about {N} the {b}.", "Tell me a short story about a {b} named {N}.", "Write a story about {N}, a {b}, and {M}.", "I want a story about a {b} called {N}.", "Tell me a story.", "Write a short story about a {b}."]).format(**d)
    think = r.random() < 0.4
    msgs = system(r, 0.2) + [user(q), reply(r, s, f"I tell a story about {d['N']} the {d['b']}.", think)]
    if r.random() < 0.4:
        q, a = r.choice([(f"What was the name of the {d['b']}?", f"The name of the {d['b']} was {d['N']}."), (f"Who is {d['N']}?", f"{d['N']} is a {d['b']}.")])
        msgs += [user(q), reply(r, a, "I look at the story.", think)]
    return msgs, "thinking" if think else "chat"


def filler(r, chars):
    """Paragraphs of about so many characters."""
    out, n, kind = [], 0, r.random()
    while n < chars:
        if kind < 0.6:
            p = story(r)[0]
        elif kind < 0.85:
            p = " ".join(r.choice(FACTS)[1] for _ in range(4))
        else:
            p = W.phrase(r, 15, 40).capitalize() + "."
        out.append(p)
        n += len(p) + 2
    return out


KINDS = ["secret word", "code word", "password", "lucky number", "access code"]


def needle_conv(r, chars, depth=None, needles=None, exact=0.0):
    """A long text with facts hidden in it, then questions about them; `exact` of them only ask for an exact reply."""
    if exact and r.random() < exact:
        turn = exact_turn(r, r.random() < 0.5)
        turn[0]["content"] = "\n\n".join(filler(r, chars)) + "\n\n" + turn[0]["content"]
        return turn, "thinking" if turn[1]["reasoning_content"] else "chat"
    names = r.sample(W.NAMES, needles or r.randint(1, 4))
    kind, paras = r.choice(KINDS), filler(r, chars)
    vals = {n: W.code(r) for n in names}
    for i, (n, v) in enumerate(vals.items()):
        d = depth if depth is not None and i == 0 else r.random()
        paras.insert(int(d * len(paras)), r.choice(["The {k} of {n} is {v}.", "Note: the {k} of {n} is {v}.", "Remember that the {k} of {n} is {v}."]).format(k=kind, n=n, v=v))
    body, order, think = "\n\n".join(paras), list(names), r.random() < 0.25
    q = r.choice(["What is the {k} of {n}?", "Tell me the {k} of {n}.", "Which {k} does {n} have?"])
    intro = r.choice(["Read this text.\n\n", "Here is a text.\n\n", "", "Text:\n\n"])
    msgs = [user(intro + body + "\n\n" + q.format(k=kind, n=order[0]))]
    if r.random() < 0.15:
        msgs = [{"role": "system", "content": body}, user(q.format(k=kind, n=order[0]))]
    for i, n in enumerate(order):
        if i:
            msgs.append(user(q.format(k=kind, n=n)))
        msgs.append(reply(r, f"The {kind} of {n} is {vals[n]}.", f"I look for {n}.", think))
    return msgs, "thinking" if think else "chat"


# ---------------------------------------------------------------- mixes
def mixed_conv(r):
    """Several short tasks in one conversation."""
    msgs, mode = system(r, 0.3), "chat"
    for _ in range(r.randint(2, 4)):
        part, mode = r.choice([fact_conv, math_conv, recall_conv, echo_conv, list_conv, json_conv])(r)
        msgs += [m for m in part if m["role"] != "system"]
    return msgs, mode


MAKERS = {"tool": tool_conv, "json": json_conv, "math": math_session, "fact": fact_conv, "story": story_conv, "recall": recall_conv, "echo": echo_conv, "list": list_conv, "mixed": mixed_conv, "exact": exact_conv, "value": value_json, "count": count_conv}
MIX = [("tool", 0.12), ("json", 0.11), ("math", 0.14), ("fact", 0.16), ("story", 0.03), ("recall", 0.11), ("echo", 0.05), ("list", 0.03), ("mixed", 0.06), ("needle", 0.07), ("exact", 0.08), ("value", 0.03), ("count", 0.01)]


def conversation(r, chars, mix=MIX, exact=0.0):
    """(messages, mode) of one document; needles take up to `chars` characters."""
    names, weights = zip(*mix)
    k = r.choices(names, weights)[0]
    return needle_conv(r, int(chars * r.uniform(0.08, 0.8)), exact=exact) if k == "needle" else MAKERS[k](r)


def document(r, chars, mix=MIX):
    """One training text; a few carry a reasoning effort prefix."""
    msgs, mode = conversation(r, chars, mix, exact=0.15)
    effort = r.choice(["high", "max"]) if mode == "thinking" and r.random() < 0.05 else None
    return E.render(msgs, mode, effort=effort, release="0731")


TOKENIZER_MIX = [("tool", 0.13), ("json", 0.14), ("math", 0.17), ("fact", 0.20), ("story", 0.04), ("recall", 0.15), ("echo", 0.06), ("list", 0.03), ("needle", 0.08)]


def corpus(seed, documents):
    """Texts for the tokenizer."""
    r = random.Random(seed)
    for i in range(documents):
        yield E.render(*conversation(r, 2000, TOKENIZER_MIX))
        if i % 10 == 0:
            yield " ".join(W.WORDS[i % len(W.WORDS):][:60])
            yield E.EFFORT_1 + E.EFFORT_2


def golden_text(seed, chars):
    """Plain generated text for the golden prompts."""
    r = random.Random(1000 + seed)
    return " ".join(filler(r, chars))


if __name__ == "__main__":
    rand = random.Random(1)
    for kind in list(MAKERS):
        print("-----", kind)
        print(E.render(*MAKERS[kind](rand))[-700:])
