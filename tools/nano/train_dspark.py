"""Trains the DSpark stages on a frozen, exported backbone and writes the 0731-form checkpoint.

Anchors are random positions inside assistant turns; every slot learns the backbone's own next-token distribution
(soft targets), the confidence head learns 1 - half the L1 distance of draft and target.
"""
import argparse
import os
import shutil
import time

import torch
import torch.nn.functional as F

import checkpoint
import dspark
import evaluate
import feed
import muon
import ops as O
from feed import Phase
from model import Run
from quantise import Rounder
from shape import CFG

PHASES = [Phase(1.0, 1024, 0.0, 0.0)]
TOKENS, ANCHORS = 32768, 40
SLOT_WEIGHTS = (1.0, 0.9, 0.8, 0.7, 0.6)


def start_from_mtp(stages, mtp):
    """Every stage starts as the trained MTP layer."""
    with torch.no_grad():
        for s in stages:
            for k, p in s.p.items():
                if k in mtp.p and p.shape == mtp.p[k].shape:
                    p.copy_(mtp.p[k])
            s.gate_bias.copy_(mtp.gate_bias)


def targets(own, batch):
    """Frozen backbone on [B,T] in bf16: draft inputs per position and the target logits' hidden rows."""
    run = Run(hidden=[])
    with torch.no_grad():
        h, _ = own.backbone(batch, torch.bfloat16, run=run)
    return run.hidden, h.view(*batch.shape, -1)


def anchors(batch, inside, eos, count):
    """Random (sequence, position) pairs whose next token lies inside an answer."""
    good = inside & (batch != eos)
    good[:, :2] = False
    good[:, -8:] = False
    pick = (torch.rand(batch.shape, device=batch.device) * good).topk(count, 1)
    keep = pick.values > 0
    seq = torch.arange(len(batch), device=batch.device)[:, None].expand(-1, count)[keep]
    return seq, pick.indices[keep] - 1


def loss(own, stages, weights, batch, marks):
    """(draft loss, confidence loss, share of first drafts that match)."""
    hidden, h = targets(own, batch)
    seq, pos = anchors(batch, evaluate.answers(batch, marks), marks["eos"], ANCHORS)
    main = dspark.main_rows(weights, hidden, own.cfg).view(*batch.shape, -1)
    rows, ok = dspark.gather_context(weights, main, seq, pos, own.cfg)
    x, normed = dspark.draft_pass(own, stages, weights, rows, ok, batch[seq, pos + 1], pos, own.cfg["dspark_noise"])
    at = pos[:, None] + 1 + torch.arange(5, device=pos.device)
    before = batch[seq[:, None], at]
    ended = (before == marks["eos"]).cummax(1).values
    lq = dspark.slot_logits(own, weights, normed, before).log_softmax(-1)
    p = own.logits(h[seq[:, None], at]).softmax(-1)
    w = torch.tensor(SLOT_WEIGHTS, device=pos.device) * ~ended
    draft = (-(p * lq).sum(-1) * w).sum() / w.sum()
    with torch.no_grad():
        goal = 1 - 0.5 * (lq.exp() - p).abs().sum(-1)
        hit = (lq.argmax(-1) == p.argmax(-1)).float()
        hits = [(hit[:, i] * ~ended[:, i]).sum() / (~ended[:, i]).sum() for i in (0, 4)]
    conf = dspark.confidence([{k: v for k, v in weights[-1].items()}], x.detach(), before)
    return draft, (F.binary_cross_entropy_with_logits(conf, goal, reduction="none") * w).sum() / w.sum(), hits


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--backbone", required=True, help="trained nano checkpoint")
    ap.add_argument("--out", required=True, help="folder beside it")
    ap.add_argument("--minutes", type=float, required=True)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--adam-lr", type=float, default=3e-3)
    ap.add_argument("--workers", type=int, default=8)
    a = ap.parse_args()
    from tokenizers import Tokenizer
    import sinkhorn_cuda
    tokenizer = os.path.join(a.backbone, "tokenizer.json")
    f = feed.Feed(a.workers, tokenizer, 77, PHASES, TOKENS)
    marks = evaluate.marks_of(Tokenizer.from_file(tokenizer))
    torch.backends.cuda.matmul.allow_tf32 = True
    sinkhorn_cuda.enable(O.sinkhorn_plain)
    torch.manual_seed(3)
    own = checkpoint.load(a.backbone).cuda().requires_grad_(False)
    stages = dspark.new_stages(CFG)
    start_from_mtp(stages, own.mtp.cpu())
    stages.cuda()
    own.cuda()
    big, small = muon.split(stages, CFG)
    opt, adam, rounder = muon.Muon(big), muon.adamw(small, a.adam_lr), Rounder(stages)
    t0, step = time.time(), 0
    while time.time() - t0 < a.minutes * 60:
        share = (time.time() - t0) / (a.minutes * 60)
        k = min(1.0, (step + 1) / 30) * (1.0 if share < 0.4 else max(0.02, (1 - share) / 0.6))
        weights = dspark.stage_weights(stages, torch.bfloat16, rounder.rounded())
        draft, conf, hits = loss(own, stages, weights, f.get(0)[:, :PHASES[0].length].contiguous(), marks)
        (draft + 0.2 * conf).backward()
        muon.set_lr(adam, a.adam_lr * k)
        torch.nn.utils.clip_grad_norm_([p for p, _ in small], 1.0)
        adam.step()
        opt.step(a.lr * k)
        stages.zero_grad(set_to_none=True)
        if step % 50 == 0:
            print(f"{time.time() - t0:6.1f}s step {step} draft {draft.item():.4f} confidence {conf.item():.4f} first {hits[0].item():.3f} fifth {hits[1].item():.3f}", flush=True)
        step += 1
    checkpoint.export(own, a.out, stages=stages, backbone_of=os.path.basename(os.path.normpath(a.backbone)))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(a.backbone, name), a.out)
    print("trained", step, "steps", flush=True)
    f.stop()
    os._exit(0)         # does not wait for queue threads


if __name__ == "__main__":
    main()
