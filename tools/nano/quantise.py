"""Rounds every FP8 and FP4 weight of a model to its checkpoint format in two large calls (for training)."""
import torch

from formats import e2m1_round, e4m3_round, pow2_up
from model import FP4_NAMES, FP8_NAMES


def _round8(b):
    """[n, 16384] blocks."""
    s = pow2_up(b.abs().amax(1, keepdim=True).clamp_min(1e-4) / 448)
    return e4m3_round((b / s).clamp(-448, 448)) * s


def _round4(g):
    """[n, 32] groups."""
    s = pow2_up(g.abs().amax(1, keepdim=True).clamp_min(6 * 2.0 ** -126) / 6)
    return e2m1_round((g / s).clamp(-6, 6)) * s


def _blocks(p):
    o, i = p.shape
    return p.view(o // 128, 128, i // 128, 128).transpose(1, 2).reshape(-1, 16384)


def _unblock(b, p):
    o, i = p.shape
    return b.view(o // 128, i // 128, 128, 128).transpose(1, 2).reshape(o, i)


class Rounder:
    """rounded() -> {parameter: rounded float32 value} of the given blocks."""

    def __init__(self, blocks, compiled=False):
        named = [(k.replace("/", "."), p) for b in blocks for k, p in b.p.items()]
        self.fp8 = [p for k, p in named if k in FP8_NAMES]
        self.fp4 = [p for k, p in named if k in FP4_NAMES]
        wrap = (lambda f: torch.compile(f, dynamic=False)) if compiled else (lambda f: f)
        self.round8, self.round4 = wrap(_round8), wrap(_round4)

    @torch.no_grad()
    def rounded(self):
        out = {}
        q8 = self.round8(torch.cat([_blocks(p) for p in self.fp8])).split([p.numel() // 16384 for p in self.fp8])
        out.update({p: _unblock(q, p) for p, q in zip(self.fp8, q8)})
        q4 = self.round4(torch.cat([p.reshape(-1, 32) for p in self.fp4])).split([p.numel() // 32 for p in self.fp4])
        out.update({p: q.view(p.shape) for p, q in zip(self.fp4, q4)})
        return out
