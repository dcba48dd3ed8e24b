"""Muon for the matrices, AdamW for the rest."""
import torch

from model import FP4_NAMES, FP8_NAMES


def orthogonal(g, steps=5):
    """Newton-Schulz orthogonalisation of a batch of matrices [n,a,b]."""
    x = g.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x.mT if tall else x


class Muon:
    """Momentum, orthogonalised; update size matched to AdamW's."""

    def __init__(self, params, momentum=0.95, decay=0.05):
        self.groups, self.momentum, self.decay = {}, momentum, decay
        for p, parts in params:         # parts: row blocks that are matrices of their own
            shape = (p.shape[-2] // parts, p.shape[-1])
            self.groups.setdefault(shape, []).append(p)
        self.buffers = {s: torch.zeros(sum(p.numel() for p in ps) // (s[0] * s[1]), *s, device="cuda") for s, ps in self.groups.items()}

    @torch.no_grad()
    def step(self, lr):
        for s, ps in self.groups.items():
            g = torch.cat([p.grad.reshape(-1, *s) for p in ps])
            b = self.buffers[s]
            b.lerp_(g, 1 - self.momentum)
            u = orthogonal(g.lerp(b, self.momentum)).float() * (0.2 * max(s) ** 0.5 * lr)
            sizes = [p.numel() // (s[0] * s[1]) for p in ps]
            torch._foreach_mul_(ps, 1 - lr * self.decay)
            torch._foreach_sub_(ps, [x.reshape(p.shape) for x, p in zip(u.split(sizes), ps)])


def split(blocks, cfg):
    """Parameters of blocks -> (Muon's [(p, parts)], AdamW's [(p, lr factor)])."""
    big, small = [], []
    for b in blocks:
        for k, p in b.p.items():
            n = k.replace("/", ".")
            if n in FP8_NAMES or n in FP4_NAMES or n.endswith(("compressor.wkv.weight", "compressor.wgate.weight")):
                parts = cfg["o_groups"] if n == "attn.wo_a.weight" else 2 if n.endswith("w13") else 1
                big.append((p, parts))
            else:
                small.append((p, 0.3 if "hc_" in n else 1.0 if p.ndim == 2 else 0.5))
    return big, small


def adamw(pairs, lr):
    """Fused AdamW with one group per factor."""
    factors = sorted({f for _, f in pairs})
    groups = [{"params": [p for p, q in pairs if q == f], "factor": f} for f in factors]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)


def set_lr(opt, lr):
    """Learning rate of every group."""
    for g in opt.param_groups:
        g["lr"] = lr * g["factor"]
