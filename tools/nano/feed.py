"""Worker processes that generate, encode and pack training rows while the model trains."""
import multiprocessing as mp
import os
import queue
import random
import threading
from dataclasses import dataclass, field

import numpy as np
import torch

import data


@dataclass
class Phase:
    """One stretch of the curriculum."""
    until: float                # share of the schedule at which it ends
    length: int                 # tokens per row
    long_share: float           # rows that start with one long document
    select: float               # share of steps with the indexer's selection on (else every row is visible)
    mix: list = field(default_factory=lambda: data.MIX)


def row(r, encode, phase):
    """length + 2 tokens: documents back to back."""
    t, out = phase.length, []
    if r.random() < phase.long_share:
        share = 1.0 if r.random() < 0.5 else r.uniform(0.2, 1.0)
        msgs = data.needle_conv(r, int((t - 120) * 4.2 * share), needles=r.randint(2, 8), exact=0.1)
        out = encode(data.E.render(*msgs))
        if len(out) > t + 2:
            out = []
    while len(out) < t + 2:
        out += encode(data.document(r, min(t, 2048) * 4.2, phase.mix))
    return np.array(out[:t + 2], dtype=np.uint16)


def worker(number, seed, tokenizer, phases, current, out):
    """Produces (phase, 4 rows) for ever."""
    from tokenizers import Tokenizer
    tok, r = Tokenizer.from_file(tokenizer), random.Random(seed * 1000 + number)

    def encode(text):
        return tok.encode(text, add_special_tokens=False).ids
    while True:
        k = current.value
        out.put((k, np.stack([row(r, encode, phases[k]) for _ in range(4)])))


class Feed:
    """Batches of the current phase on the GPU."""

    def __init__(self, count, tokenizer, seed, phases, tokens):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        ctx = mp.get_context("fork")
        self.phases, self.tokens = phases, tokens
        self.current, self.rows = ctx.Value("i", 0), ctx.Queue(maxsize=400)
        self.workers = [ctx.Process(target=worker, args=(i, seed, tokenizer, phases, self.current, self.rows), daemon=True) for i in range(count)]
        for p in self.workers:
            p.start()
        self.ready = queue.Queue(maxsize=6)
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self):
        acc, have = [], -1
        while True:
            k, rows = self.rows.get()
            if k != self.current.value:
                continue
            if k != have:
                acc, have = [], k
            acc.append(rows)
            need = self.tokens // self.phases[k].length
            if sum(len(a) for a in acc) >= need:
                batch, acc = np.concatenate(acc)[:need].astype(np.int64), []
                self.ready.put((k, torch.from_numpy(batch).pin_memory()))

    def get(self, k):
        """Next batch [B, T+2] of phase k."""
        self.current.value = k
        while True:
            have, batch = self.ready.get()
            if have == k:
                return batch.cuda(non_blocking=True)

    def stop(self):
        """Ends the workers (they hold the output pipe of the program)."""
        for p in self.workers:
            p.kill()
