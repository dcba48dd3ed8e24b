"""Trains the backbone and the MTP block.  Time-boxed and resumable; see README.md for the commands.

The schedule is a share f of the whole training (0 to 1): the run covers [--begin, --end] of it in --minutes.  Weights
are rounded to the checkpoint's FP8/FP4 grids in every forward pass (straight-through gradients), the indexer learns from
the attention mass of its own layer.
"""
import argparse
import json
import math
import os
import random
import time

import torch

import checkpoint
import feed
import muon
import ops as O
from feed import Phase
from model import Nano, Run
from ops import compile_ops, ops
from quantise import Rounder

LONG = [("tool", 0.12), ("json", 0.11), ("math", 0.14), ("fact", 0.15), ("story", 0.03), ("recall", 0.13), ("echo", 0.04), ("list", 0.02), ("mixed", 0.07), ("needle", 0.08), ("exact", 0.07), ("value", 0.03), ("count", 0.01)]
PHASES = [Phase(0.35, 1024, 0.12, 0.0), Phase(0.60, 1024, 0.20, 0.7), Phase(0.80, 4096, 0.5, 0.7, LONG), Phase(1.0, 16384, 0.6, 0.7, LONG)]
TOKENS = 65536
DECAY_FROM = 0.5


def enable_speed():
    """Compiled pieces and the Sinkhorn kernel."""
    import sinkhorn_cuda
    torch._dynamo.config.cache_size_limit = 64
    torch._dynamo.config.accumulated_cache_size_limit = 2048
    torch.backends.cuda.matmul.allow_tf32 = True
    sinkhorn_cuda.enable(O.sinkhorn_plain)
    compile_ops()


def losses(model, batch, length, select, rounded):
    """(main, mtp, indexer, balance) losses of a batch [B,T+2], and the Run."""
    ids, nxt = batch[:, :length].contiguous(), batch[:, 1:length + 1].contiguous()
    run = Run(train=True, select=select)
    h, X = model.backbone(ids, torch.bfloat16, rounded, run)
    mh, _ = model.draft(X, nxt, torch.bfloat16, rounded, run)
    head = model.head.bfloat16()
    l1 = ops.cross_entropy(h, head, nxt.reshape(-1))
    l2 = ops.cross_entropy(mh, head, batch[:, 2:length + 2].reshape(-1))
    return l1, l2, run.kl / 3, run.balance, run


def learning_rate(f, step):
    """Factor: short warm-up, flat, linear decay."""
    return min(1.0, (step + 1) / 60) * (1.0 if f < DECAY_FROM else max(0.01, (1 - f) / (1 - DECAY_FROM)))


class Trainer:
    """Model, optimisers and one step."""

    def __init__(self, a):
        torch.manual_seed(a.seed)
        self.model = (checkpoint.load(a.resume) if a.resume else Nano()).cuda()
        m, self.a = self.model, a
        blocks = list(m.layers) + [m.mtp]
        big, small = muon.split(blocks, m.cfg)
        small += [(m.embed, 1.0), (m.head, 1.0), (m.norm, 0.5), (m.hc_head_fn, 0.3), (m.hc_head_base, 0.3), (m.hc_head_scale, 0.3)]
        self.small = [p for p, _ in small]
        self.muon, self.adam = muon.Muon(big), muon.adamw(small, a.adam_lr)
        self.rounder, self.steps = Rounder(blocks, compiled=True), 0

    def step(self, batch, phase, f, r):
        select = r.random() < phase.select
        l1, l2, kl, balance, run = losses(self.model, batch, phase.length, select, self.rounder.rounded())
        (l1 + 0.3 * l2 + kl + 0.003 * balance).backward()
        k = learning_rate(f, self.steps)
        muon.set_lr(self.adam, self.a.adam_lr * k)
        torch.nn.utils.clip_grad_norm_(self.small, 1.0)
        self.adam.step()
        self.muon.step(self.a.lr * k)
        self.model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for block, load in run.loads:
                block.gate_bias += 0.002 * k * torch.sign(load.mean() - load)
        self.steps += 1
        return l1, l2, kl, balance, run


def loop(t, f, a):
    """Until the time is over."""
    r, t0, seen, mark, log, k = random.Random(a.seed), a.t0 or time.time(), 0, (time.time(), 0), [], 0
    while True:
        now = time.time()
        share = a.begin + (a.end - a.begin) * (now - t0) / (a.minutes * 60)
        if share >= a.end or os.path.exists(a.out + ".stop"):
            return log
        k, before = next(i for i, p in enumerate(PHASES) if share < p.until or i == len(PHASES) - 1), k
        if k != before and t.steps:
            checkpoint.export(t.model, a.out)       # what there is, should the next phase fail
        out = t.step(f.get(k), PHASES[k], share, r)
        seen += TOKENS
        if t.steps in (1, 2, 3, 10, 25) or t.steps % 100 == 0:
            v = [x.item() if torch.is_tensor(x) else x for x in out[:4]]
            worst = max((load.max() * len(load)).item() for _, load in out[4].loads)
            end = time.time()
            print(f"{end - t0:6.1f}s f={share:.3f} step {t.steps} T={PHASES[k].length} loss {v[0]:.4f} mtp {v[1]:.4f} kl {v[2]:.4f} bal {worst:.2f} "
                  f"tok/s {(seen - mark[1]) / (end - mark[0]):.0f} wait {f.ready.qsize()} mem {torch.cuda.max_memory_allocated() / 2**30:.0f}G", flush=True)
            mark = (time.time(), seen)
            log.append([round(end - t0, 1), t.steps, seen] + [round(x, 5) for x in v])
            if not math.isfinite(v[0]):
                raise SystemExit("loss is not finite")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True, help="checkpoint folder")
    ap.add_argument("--tokenizer", required=True, help="tokenizer.json")
    ap.add_argument("--minutes", type=float, required=True)
    ap.add_argument("--begin", type=float, default=0.0)
    ap.add_argument("--end", type=float, default=1.0)
    ap.add_argument("--resume", default="", help="checkpoint of an earlier piece")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--lr", type=float, default=2e-3, help="Muon")
    ap.add_argument("--adam-lr", type=float, default=3e-3)
    ap.add_argument("--workers", type=int, default=14)
    ap.add_argument("--t0", type=float, default=0, help="start of the time box (epoch seconds)")
    a = ap.parse_args()
    f = feed.Feed(a.workers, a.tokenizer, a.seed + int(1000 * a.begin), PHASES, TOKENS)
    enable_speed()
    t = Trainer(a)
    log = loop(t, f, a)
    checkpoint.export(t.model, a.out)
    with open(os.path.join(a.out, "..", "train_log.json"), "w") as fh:
        json.dump(log, fh)
    print("trained", t.steps, "steps", t.steps * TOKENS, "tokens", flush=True)
    f.stop()
    os._exit(0)         # does not wait for queue threads


if __name__ == "__main__":
    main()
