"""Tools of the generated conversations: a fixed catalogue and made-up ones, each with a request, call and answer."""
import json

import words as W


def fn(name, desc, /, **params):
    """OpenAI tool.  params: name=(type or schema, description); a type ending in '?' is optional."""
    props, required = {}, []
    for k, (t, d) in params.items():
        schema = dict(t) if isinstance(t, dict) else {"type": t.rstrip("?")}
        if schema.get("type") == "array":
            schema["items"] = {"type": "string"}
        schema["description"] = d
        props[k] = schema
        if isinstance(t, dict) or not t.endswith("?"):
            required.append(k)
    return {"type": "function", "function": {"name": name, "description": desc,
                                             "parameters": {"type": "object", "properties": props, "required": required}}}


OK = json.dumps({"ok": True})


def weather(r):
    key, name = r.choice(["city", "location", "city"]), r.choice(["get_weather", "weather", "get_current_weather"])
    c, t, s = r.choice(W.CITIES), r.randint(-9, 38), r.choice("sunny rainy cloudy windy snowy foggy".split())
    params, args = {key: ("string", f"The {key}")}, {key: c}
    q = r.choice(["What is the weather in {}?", "How is the weather in {}?", "Tell me the weather in {}.", "What's the weather like in {}?", "Weather in {}?", "Is it raining in {}?"]).format(c)
    k = r.random()
    if k < 0.25:
        params["days"] = ("integer?", "Days ahead")
        if r.random() < 0.6:
            d = r.randint(1, 9)
            args["days"], q = d, f"What will the weather in {c} be in {d} days?"
    elif k < 0.5:
        u = r.choice(["celsius", "fahrenheit"])
        params["unit"] = ({"type": "string", "enum": ["celsius", "fahrenheit"]}, "The unit")
        args["unit"], q = u, q[:-1] + f" in {u}" + q[-1]
    result = r.choice([json.dumps({"temperature": t, "sky": s}), f"{t} degrees, {s}"])
    return fn(name, r.choice(["Get the weather of a city.", "Get the current weather.", "Returns the weather for a city."]), **params), q, args, result, f"In {c} it is {s} with {t} degrees."


def add(r):
    x, y = r.randint(1, 999), r.randint(1, 999)
    a, b = r.choice([("a", "b"), ("x", "y"), ("first", "second")])
    return (fn(r.choice(["add", "add_numbers", "sum"]), "Add two numbers.", **{a: ("integer", "First number"), b: ("integer", "Second number")}),
            r.choice([f"Use the tool to add {x} and {y}.", f"Add {x} and {y}.", f"What is {x} plus {y}?", f"Please add {x} and {y} with the tool."]),
            {a: x, b: y}, r.choice([json.dumps({"sum": x + y}), str(x + y)]), f"The sum of {x} and {y} is {x + y}.")


def search(r):
    p, w = W.phrase(r), W.word(r)
    params, args, q = {"query": ("string", "The query")}, {"query": p}, r.choice([f"Search for {p}.", f"Search the web for {p}.", f"Look up {p}."])
    if r.random() < 0.5:
        params["limit"] = ("integer?", "Number of results")
        if r.random() < 0.6:
            n = r.randint(1, 20)
            args["limit"], q = n, q[:-1] + f" and give me {n} results."
    return fn(r.choice(["search", "web_search"]), "Search the web.", **params), q, args, json.dumps({"top": w}), f"The top result is {w}."


def send_message(r):
    n, p = r.choice(W.NAMES), W.phrase(r, 2, 6)
    a, b = r.choice([("to", "text"), ("recipient", "body"), ("to", "message")])
    return (fn(r.choice(["send_message", "send_email", "write_to"]), "Send a message to a person.", **{a: ("string", "The person"), b: ("string", "The text")}),
            r.choice([f"Send {n} this message: {p}", f"Write to {n}: {p}", f"Tell {n}: {p}"]), {a: n, b: p}, OK, f"I sent the message to {n}.")


def set_timer(r):
    m = r.randint(1, 90)
    u = r.choice(["minutes", "seconds"])
    return (fn("set_timer", "Set a timer.", **{u: ("integer", u.capitalize())}), r.choice([f"Set a timer for {m} {u}.", f"Wake me in {m} {u}.", f"Start a timer of {m} {u}."]),
            {u: m}, OK, f"The timer is set for {m} {u}.")


def node_status(r):
    n, s, t = W.node(r), r.choice(["ready", "busy", "down"]), r.randint(30, 90)
    return (fn("node_status", "Get the status of a cluster node.", node=("string", "The node name")),
            r.choice([f"What is the status of {n}?", f"Check {n}.", f"Is {n} ready?", f"How is {n}?"]), {"node": n}, json.dumps({"status": s, "temp": t}), f"The node {n} is {s} at {t} degrees.")


def restart_node(r):
    n, f = W.node(r), r.random() < 0.5
    return (fn("restart_node", "Restart a cluster node.", node=("string", "The node name"), force=("boolean", "Force the restart")),
            f"Restart {n} with force." if f else r.choice([f"Restart {n}.", f"Restart {n} without force."]), {"node": n, "force": f}, OK, f"The node {n} was restarted.")


def read_file(r):
    p, w = W.path(r), W.phrase(r, 1, 4)
    return (fn("read_file", "Read a file.", path=("string", "The path")), r.choice([f"Read {p}.", f"What is in {p}?", f"Show me the file {p}."]), {"path": p}, w, f"The file {p} says: {w}")


def write_file(r):
    p, w = W.path(r), W.phrase(r, 1, 5)
    return (fn("write_file", "Write a file.", path=("string", "The path"), content=("string", "The content")),
            r.choice([f"Write \"{w}\" to {p}.", f"Save \"{w}\" in the file {p}.", f"Create {p} with the content \"{w}\"."]), {"path": p, "content": w}, OK, f"I wrote the file {p}.")


def get_time(r):
    c, t = r.choice(W.CITIES), f"{r.randint(0, 23)}:{r.randint(10, 59)}"
    key = r.choice(["city", "timezone", "location"])
    return (fn(r.choice(["get_time", "current_time"]), "Get the time in a city.", **{key: ("string", "The city")}),
            r.choice([f"What time is it in {c}?", f"Tell me the time in {c}.", f"Time in {c}?"]), {key: c}, r.choice([json.dumps({"time": t}), t]), f"It is {t} in {c}.")


def book_table(r):
    n, k, d = r.choice(W.NAMES), r.randint(1, 12), r.choice(W.DAYS)
    return (fn("book_table", "Book a table.", name=("string", "Name of the guest"), people=("integer", "Number of people"), day=("string", "The day")),
            r.choice([f"Book a table for {n}, {k} people, on {d}.", f"I need a table on {d} for {k} people under the name {n}."]), {"name": n, "people": k, "day": d}, OK, f"The table for {k} people on {d} is booked for {n}.")


def get_price(r):
    t, p = r.choice(W.WORDS), r.randint(1, 99)
    k = r.choice(["item", "product"])
    return (fn(r.choice(["get_price", "price_of"]), "Get the price of an item.", **{k: ("string", "The item")}), r.choice([f"How much is a {t}?", f"What does a {t} cost?", f"Price of a {t}?"]),
            {k: t}, json.dumps({"price": p}), f"A {t} costs {p} dollars.")


def tag_items(r):
    ws = [W.word(r) for _ in range(r.randint(1, 4))]
    return fn("tag_items", "Set tags.", tags=("array", "List of tags")), f"Set these tags: {', '.join(ws)}.", {"tags": ws}, json.dumps({"count": len(ws)}), f"I set {len(ws)} tag{'s' if len(ws) > 1 else ''}."


def set_light(r):
    ro, lv = r.choice(W.ROOMS), r.randint(1, 9) / 10
    return (fn("set_light", "Set a light.", room=("string", "The room"), level=("number", "Level from 0 to 1")), r.choice([f"Set the light in the {ro} to {lv}.", f"Dim the {ro} light to {lv}."]),
            {"room": ro, "level": lv}, OK, f"The light in the {ro} is at {lv}.")


def value(r, kind):
    """(JSON value, how a request says it)."""
    if kind == "integer":
        v = r.randint(0, 999)
        return v, str(v)
    if kind == "number":
        v = r.randint(1, 999) / 10
        return v, str(v)
    if kind == "boolean":
        v = r.random() < 0.5
        return v, "true" if v else "false"
    if kind == "array":
        v = [W.word(r) for _ in range(r.randint(1, 3))]
        return v, ", ".join(v)
    v = r.choice([W.word(r), W.word(r), W.phrase(r, 2, 4), r.choice(W.NAMES), r.choice(W.CITIES), W.path(r)])
    return v, v


def made_up(r):
    """A tool that exists nowhere else: verb, noun, one to three parameters."""
    verb, noun = r.choice(W.VERBS), r.choice(W.NOUNS)
    params, args, said = {}, {}, []
    for _ in range(r.randint(1, 3)):
        kind = r.choices(["string", "integer", "number", "boolean", "array"], [5, 3, 1, 1, 1])[0]
        key = r.choice(W.PARAMS[kind])
        if key in params:
            continue
        v, s = value(r, kind)
        params[key] = (kind, f"The {key.replace('_', ' ')}" + r.choice(["", f" of the {noun}"]))
        args[key] = v
        said.append((key, s))
    style = r.random()
    spoken = " and ".join(f"{k.replace('_', ' ')} {s}" for k, s in said)
    q = f"{verb.capitalize()} the {noun} with {spoken}."
    if style < 0.25:
        q = f"Please {verb} a {noun}: " + ", ".join(f"{k} = {s}" for k, s in said) + "."
    elif style < 0.4:
        q = f"Call {verb}_{noun} with " + ", ".join(f"{k} {s}" for k, s in said) + "."
    elif style < 0.5:
        q = f"I want to {verb} the {noun}. Use {spoken}."
    w = W.word(r)
    result, answer = r.choice([(OK, f"Done. I used {verb} on the {noun}."), (json.dumps({"result": w}), f"The result is {w}."), (json.dumps({"status": "ok", "id": 7}), f"Done. I used {verb} on the {noun}.")])
    return fn(f"{verb}_{noun}", f"{verb.capitalize()} the {noun}.", **params), q, args, result, answer


CATALOGUE = [weather, weather, add, search, send_message, set_timer, node_status, restart_node, read_file, write_file, get_time, book_table, get_price, tag_items, set_light]


def pick(r):
    """(tool, request, arguments, result text, answer)."""
    return made_up(r) if r.random() < 0.45 else r.choice(CATALOGUE)(r)
