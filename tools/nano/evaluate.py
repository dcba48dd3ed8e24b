"""Measures a checkpoint on held-out generated tasks with our own float32 module.  Usage: evaluate.py CHECKPOINT

A greedy answer equals the expected text exactly if, with that text as input, every expected token is the most likely
one; so one forward pass over prompt and expected answer decides a task.  Draft acceptance is measured the same way.
Loops are looked for in real greedy generation.  Prints one line per figure and a JSON object last.
"""
import json
import os
import random
import sys

import torch

import checkpoint
import data
import dspark
from model import Run
from shape import CFG

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DEMO = ["Hello!", "Who are you?", "What can you do?", "What is the capital of France?", "What is 27 + 46?", "Tell me a story.", "Tell me a story about Mia the fox.", "What is TP=2?",
        "How do I start the cluster?", "Write a JSON object with the keys name, age and city.", "Count from 1 to 20.", "What is the opposite of hot?", "My code word is falcon.", "Repeat: river stone cloud",
        "Why is the sky blue?", "Explain the KV cache."]
GOALS = {"fact": 0.95, "tool_call": 0.95, "tool_result": 0.95, "json": 0.95, "sum": 0.90, "recall": 0.95, "needle_1k": 0.90, "needle_4k": 0.90, "needle_16k": 0.90, "mtp_acceptance": 0.70, "dspark_accepted": 2.5}


def chat_only(make, mode="chat"):
    """Repeats a generator until it gives the wanted mode."""
    while True:
        msgs, m = make()
        if m == mode:
            return msgs, m


def tool_task(r):
    """One round that does call a tool."""
    while True:
        msgs, m = data.tool_conv(r, rounds=1)
        if m == "chat" and any(x.get("tool_calls") for x in msgs):
            return msgs, m


def tasks(seed):
    """name -> (generator, number, padded length, which assistant turn)."""
    r = random.Random(seed)

    def needle(tokens):
        return lambda: chat_only(lambda: data.needle_conv(r, int((tokens - 150) * 4.1), depth=r.random(), needles=r.randint(1, 3)))
    return {"fact": (lambda: chat_only(lambda: data.fact_conv(r, turns=1, evaluation=True)), 512, 256, 0),
            "tool_call": (lambda: tool_task(r), 256, 1024, 0), "tool_result": (lambda: tool_task(r), 256, 1024, 1),
            "json": (lambda: chat_only(lambda: data.json_conv(r, given=True)), 512, 512, 0),
            "sum": (lambda: data.math_conv(r, kind=r.random() * 0.5, think=True), 512, 256, 0),
            "difference": (lambda: data.math_conv(r, kind=0.5 + r.random() * 0.28, think=True), 512, 256, 0),
            "recall": (lambda: chat_only(lambda: data.recall_conv(r, turns=r.randint(1, 4))), 512, 512, -1),
            "needle_1k": (needle(1000), 128, 1280, 0), "needle_4k": (needle(4000), 64, 4608, 0), "needle_16k": (needle(16000), 40, 17408, 0)}


def turns(ids, marks):
    """(start, end) of every assistant turn: tokens the model generates, end token included."""
    out, i = [], 0
    while marks["assistant"] in ids[i:]:
        s = ids.index(marks["assistant"], i) + 2
        e = ids.index(marks["eos"], s) + 1
        out.append((s, e))
        i = e
    return out


def padded(rows, length):
    """Lists -> [B, length] with zeros behind."""
    out = torch.zeros(len(rows), length, dtype=torch.long)
    for i, x in enumerate(rows):
        out[i, :len(x)] = torch.tensor(x)
    return out.to(DEVICE)


def greedy_equal(own, ids, spans, sim):
    """Which rows' spans are exactly what greedy decoding gives."""
    h, _ = own.backbone(ids, run=Run(sim=sim))
    h, ok = h.view(*ids.shape, -1), []
    for b, (s, e) in enumerate(spans):
        ok.append(bool((own.logits(h[b, s - 1:e - 1]).argmax(-1) == ids[b, s:e]).all()))
    return ok


def accuracy(own, tok, marks, sim=False, seed=4242):
    """Every task's share of exact answers."""
    out, wrong = {}, {}
    for name, (make, count, length, which) in tasks(seed).items():
        rows, spans = [], []
        while len(rows) < count:
            ids = tok(data.E.render(*make()))
            if len(ids) <= length:
                rows.append(ids)
                spans.append(turns(ids, marks)[which])
        size, ok = max(1, 32768 // length), []
        for i in range(0, count, size):
            ok += greedy_equal(own, padded(rows[i:i + size], length), spans[i:i + size], sim)
        out[name] = sum(ok) / count
        wrong[name] = [i for i, x in enumerate(ok) if not x][:3]
        wrong[name] = [(rows[i], spans[i]) for i in wrong[name]]
    return out, wrong


def answers(ids, marks):
    """[B,T] bool: tokens inside assistant turns (after the think mark, end token included)."""
    at = torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)

    def last(mask):
        return torch.where(mask, at, -1).cummax(1).values
    a = last(ids == marks["assistant"])
    ends = last((ids == marks["eos"]) | (ids == marks["bos"]))
    before = torch.cat((torch.full_like(ends[:, :1], -1), ends[:, :-1]), 1)
    return (a >= 0) & (at > a + 1) & (before < a)


def held_out_rows(tok, seed, count, length):
    """Conversations, one per row."""
    r, rows = random.Random(seed), []
    while len(rows) < count:
        ids = tok(data.document(r, 2000))
        if 20 < len(ids) <= length:
            rows.append(ids)
    return padded(rows, length)


def mtp_acceptance(own, ids, marks):
    """Share of MTP drafts that the backbone's greedy choice confirms, inside answers."""
    h, X = own.backbone(ids)
    nxt = torch.cat((ids[:, 1:], ids[:, :1] * 0), 1)
    mh, _ = own.draft(X, nxt)
    main = own.logits(h).argmax(-1).view(ids.shape)
    mtp = own.logits(mh).argmax(-1).view(ids.shape)
    on_path = answers(nxt, marks) & (main == nxt) & (nxt != marks["eos"])
    hit = mtp[:, :-1] == main[:, 1:]
    return hit[on_path[:, :-1]].float().mean().item()


def generate(own, tok_rows, steps, eos, length=256):
    """Greedy continuations by recomputation."""
    rows, done = [list(x) for x in tok_rows], [False] * len(tok_rows)
    for _ in range(steps):
        h, _ = own.backbone(padded(rows, length))
        h = h.view(len(rows), length, -1)
        last = own.logits(torch.stack([h[i, len(x) - 1] for i, x in enumerate(rows)])).argmax(-1).tolist()
        for i, t in enumerate(last):
            if not done[i] and len(rows[i]) < length:
                rows[i].append(t)
                done[i] = t == eos
        if all(done):
            break
    return rows, done


def demo(own, tk, eos):
    """Answers to the demo prompts in both modes, and how many never end."""
    prompts = [data.E.render([data.user(p)], m) for m in ("chat", "thinking") for p in DEMO]
    rows = [tk.encode(p, add_special_tokens=False).ids for p in prompts]
    full, done = generate(own, rows, 200, eos)
    for p, a, b in zip(prompts, rows, full):
        print("DEMO", p[-60:].replace("\n", " "), "=>", tk.decode(b[len(a):], skip_special_tokens=False))
    return sum(not d for d in done)


def marks_of(tk):
    """Ids of the marks used here."""
    return {"assistant": tk.token_to_id(data.E.ASSISTANT), "eos": tk.token_to_id(data.E.EOS), "bos": tk.token_to_id(data.E.BOS), "user": tk.token_to_id(data.E.USER)}


def main(path):
    from tokenizers import Tokenizer
    import ops as O
    import sinkhorn_cuda
    sinkhorn_cuda.enable(O.sinkhorn_plain)
    torch.backends.cuda.matmul.allow_tf32 = True
    tk = Tokenizer.from_file(os.path.join(path, "tokenizer.json"))
    marks = marks_of(tk)

    def tok(s):
        return tk.encode(s, add_special_tokens=False).ids
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        spark = "dspark_block_size" in json.load(f)
    stages = dspark.new_stages(CFG).cuda() if spark else None
    own, out = checkpoint.load(path, stages=stages).cuda().eval(), {}
    with torch.no_grad():
        rows = held_out_rows(tok, 99, 96, 768)
        if spark:
            out["dspark_accepted"] = dspark.acceptance(own, stages, rows, answers(rows, marks), marks["eos"])
        else:
            out, wrong = accuracy(own, tok, marks)
            out["mtp_acceptance"] = mtp_acceptance(own, rows, marks)
            out["native"] = accuracy(own, tok, marks, sim=True)[0]
            for name, cases in wrong.items():
                for ids, (s, e) in cases:
                    print("WRONG", name, tk.decode(ids[max(0, s - 60):e], skip_special_tokens=False)[-330:].replace("\n", "/"))
            out["demo_without_end"] = demo(own, tk, marks["eos"])
    for k, goal in GOALS.items():
        if k in out:
            print(f"{k}: {out[k]:.3f} (goal {goal}, {'reached' if out[k] >= goal else 'not reached'})")
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1])
