"""Trains the byte-level BPE of nano and writes tokenizer.json and tokenizer_config.json.

Same four-stage pre-tokeniser as the official tokenizer (model.md 5.1); 4,032 base entries and 64 added tokens.  Digits
are never merged, so that sums are learnt digit by digit.  Usage: bpe.py OUTDIR
"""
import collections
import heapq
import json
import os
import sys

import regex

import encoding as E

VOCAB, ADDED = 4096, 64
STAGES = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
]
_COMPILED = [regex.compile(s) for s in STAGES]


def mark(name):
    """A special token's text."""
    return f"<{E.BAR}{name.replace(' ', E.LOW)}{E.BAR}>"


BASE_SPECIAL = [E.BOS, E.EOS, E.PAD]
NAMED = ([mark("fim hole"), mark("fim begin"), mark("fim end"), E.USER, E.ASSISTANT, "<|EOT|>"]
         + [mark("tool calls begin"), mark("tool calls end"), mark("tool call begin"), mark("tool call end"),
            mark("tool outputs begin"), mark("tool outputs end"), mark("tool output begin"), mark("tool output end"), mark("tool sep")]
         + [E.THINK, E.UNTHINK, E.DSML, mark("begin sys"), mark("end sys"), E.REMINDER]
         + [E.TASKS[t] for t in ("action", "query", "authority", "domain")]
         + [mark(t) for t in ("task", "political", "entity")] + [E.TASKS["title"]]
         + [mark(t) for t in ("safety", "answer", "search", "search begin", "search end", "extracted_url")]
         + [E.TASKS["read_url"], mark("end of query"), mark("image")])
HOLDERS = [mark(f"place holder no {i}") for i in range(ADDED - len(NAMED))]
NOISE = HOLDERS[-1]         # fills the draft slots of DSpark


def byte_alphabet():
    """Byte -> printable character (the usual byte-level alphabet)."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {b: chr(b) for b in keep}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + extra)
            extra += 1
    return table


BYTES = byte_alphabet()


def pieces(text):
    """Pre-tokenised pieces of a text without special tokens."""
    parts = [text]
    for stage in _COMPILED:
        nxt = []
        for p in parts:
            at = 0
            for m in stage.finditer(p):
                if m.start() > at:
                    nxt.append(p[at:m.start()])
                nxt.append(m.group())
                at = m.end()
            if at < len(p):
                nxt.append(p[at:])
        parts = nxt
    return parts


def train(counts, n_merges):
    """counts: piece text -> occurrences.  Returns merges as pairs of alphabet strings, most frequent first."""
    words, pairs, where = [], collections.Counter(), collections.defaultdict(set)
    for text, n in sorted(counts.items()):
        w = [BYTES[b] for b in text.encode()]
        words.append((w, n))
        for a, b in zip(w, w[1:]):
            pairs[a, b] += n
            where[a, b].add(len(words) - 1)
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(merges) < n_merges:
        n, pair = heapq.heappop(heap)
        if pairs[pair] != -n:
            if pairs[pair] > 0:
                heapq.heappush(heap, (-pairs[pair], pair))
            continue
        if -n < 1:
            break
        merges.append(pair)
        new, touched = pair[0] + pair[1], collections.Counter()
        for k in list(where[pair]):
            w, c = words[k]
            for a, b in zip(w, w[1:]):
                touched[a, b] -= c
            i, out = 0, []
            while i < len(w):
                if i + 1 < len(w) and (w[i], w[i + 1]) == pair:
                    out.append(new)
                    i += 2
                else:
                    out.append(w[i])
                    i += 1
            w[:] = out
            for a, b in zip(w, w[1:]):
                touched[a, b] += c
                where[a, b].add(k)
        for p, d in touched.items():
            if d:
                pairs[p] += d
                if pairs[p] > 0:
                    heapq.heappush(heap, (-pairs[p], p))
        pairs[pair] = 0
    return merges


def tokenizer_json(merges):
    """The file's content."""
    base = BASE_SPECIAL + [BYTES[b] for b in range(256)] + [a + b for a, b in merges]
    added = list(enumerate(BASE_SPECIAL)) + [(VOCAB - ADDED + i, t) for i, t in enumerate(HOLDERS + NAMED)]

    def entry(i, t):
        return {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": i < 3}
    split = [{"type": "Split", "pattern": {"Regex": s}, "behavior": "Isolated", "invert": False} for s in STAGES]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [entry(i, t) for i, t in added],
            "normalizer": {"type": "Sequence", "normalizers": []},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": split + [
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
            "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {t: i for i, t in enumerate(base)}, "merges": [f"{a} {b}" for a, b in merges]}}


def tokenizer_config():
    """tokenizer_config.json."""
    def tok(t):
        return {"__type": "AddedToken", "content": t, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    return {"add_bos_token": False, "add_eos_token": False, "bos_token": tok(E.BOS), "eos_token": tok(E.EOS),
            "pad_token": tok(E.EOS), "unk_token": None, "clean_up_tokenization_spaces": False, "legacy": True,
            "model_max_length": 1048576, "sp_model_kwargs": {}, "tokenizer_class": "PreTrainedTokenizerFast"}


class Bpe:
    """Encoder for the written tokenizer (slow; for tests and small jobs)."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            d = json.load(f)
        self.vocab, self.rank = d["model"]["vocab"], {tuple(m.split(" ")): i for i, m in enumerate(d["model"]["merges"])}
        self.added = {a["content"]: a["id"] for a in d["added_tokens"]}
        self.split = regex.compile("|".join(regex.escape(t) for t in sorted(self.added, key=len, reverse=True)))
        self.names = {i: t for t, i in list(self.vocab.items()) + list(self.added.items())}
        self.back = {c: b for b, c in BYTES.items()}
        self.cache = {}

    def word(self, piece):
        """Token ids of one piece."""
        if piece not in self.cache:
            w = [BYTES[b] for b in piece.encode()]
            while len(w) > 1:
                r, i = min((self.rank.get(p, 1 << 30), i) for i, p in enumerate(zip(w, w[1:])))
                if r == 1 << 30:
                    break
                w[i:i + 2] = [w[i] + w[i + 1]]
            self.cache[piece] = [self.vocab[t] for t in w]
        return self.cache[piece]

    def encode(self, text):
        """Text with special tokens -> ids."""
        ids, at = [], 0
        for m in list(self.split.finditer(text)) + [None]:
            span = text[at:m.start()] if m else text[at:]
            for p in pieces(span):
                ids += self.word(p)
            if m:
                ids.append(self.added[m.group()])
                at = m.end()
        return ids

    def decode(self, ids):
        """Ids -> text."""
        out = b""
        for i in ids:
            t = self.names[i]
            out += t.encode() if t in self.added else bytes(self.back[c] for c in t)
        return out.decode("utf-8", "replace")


def main(out):
    """Trains on the generated corpus of data.py."""
    import data
    counts = collections.Counter()
    specials = regex.compile("|".join(regex.escape(t) for t in BASE_SPECIAL + NAMED))
    for text in data.corpus(seed=7, documents=6000):
        for span in specials.split(text):
            for p in pieces(span):
                if not regex.search(r"\p{N}", p):
                    counts[p] += 1
    merges = train(counts, VOCAB - ADDED - 256 - len(BASE_SPECIAL))
    filler = VOCAB - ADDED - 256 - len(BASE_SPECIAL) - len(merges)
    if filler:
        raise SystemExit(f"corpus too small: {filler} merges missing")
    os.makedirs(out, exist_ok=True)
    for name, d in (("tokenizer.json", tokenizer_json(merges)), ("tokenizer_config.json", tokenizer_config())):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            json.dump(d, f, ensure_ascii=False, indent=1)
            f.write("\n")
    t = Bpe(os.path.join(out, "tokenizer.json"))
    sample = data.corpus(seed=8, documents=200)
    texts = list(sample)
    print("characters per token", sum(map(len, texts)) / sum(len(t.encode(x)) for x in texts))


if __name__ == "__main__":
    main(sys.argv[1])
