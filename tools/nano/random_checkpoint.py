"""Random but healthy checkpoints, for bringing an engine up.

Usage: random_checkpoint.py OUT TOKENIZER_DIR            preview form (one MTP block)
       random_checkpoint.py OUT TOKENIZER_DIR BACKBONE   0731 form: random DSpark stages on the backbone of a folder beside OUT
"""
import os
import shutil
import sys

import torch

import checkpoint
import dspark
from model import FP8_NAMES, Nano
from shape import CFG


def draw(name, p, g):
    """A start value that lets a test see the step it belongs to: uneven block scales, norms, biases, sinks."""
    def gain(n, size):
        return torch.exp2((torch.rand(n, generator=g) * 3).floor() - 1).repeat_interleave(size)

    def normal(std):
        return torch.randn(p.shape, generator=g) * std
    fan = p.shape[-1] ** -0.5
    if name.endswith("norm.weight"):
        return 0.7 + 0.6 * torch.rand(p.shape, generator=g)
    if name in FP8_NAMES or name.startswith("ffn.experts"):
        size = 128 if name in FP8_NAMES else 32
        v = normal(fan) * gain(p.shape[-1] // size, size)
        return v * gain(p.shape[0] // 128, 128)[:, None] * 0.7 if p.ndim == 2 else v
    if name.endswith(("wkv.weight", "wgate.weight", "weights_proj.weight", "_fn", "confidence_head.proj.weight")):
        return normal(fan)
    if name.endswith("ape"):
        return normal(0.5)
    if name.endswith(("attn_sink", "markov_w1.weight")):
        return normal(1.0)
    if name.endswith(("gate.weight", "markov_w2.weight")):
        return normal(1.5 * fan)
    if name.endswith("_base"):
        return p + normal(0.3)
    return 0.4 + 0.6 * torch.rand(p.shape, generator=g)      # the three kinds of _scale


def randomise_block(b, g):
    """All parameters of one block; layer 1 gets values that meet the SwiGLU clamp."""
    for k, p in b.p.items():
        p.copy_(draw(k.replace("/", "."), p, g))
    if b.layer == 1:
        b.p["ffn/shared_experts/w13"].mul_(6)
        b.p["ffn/shared_experts/w2/weight"].mul_(0.04)
        b.p["ffn/experts/w13"][3].mul_(6)
        b.p["ffn/experts/w2"][3].mul_(0.04)
    if not b.hash:
        b.gate_bias.copy_(torch.randn(b.gate_bias.shape, generator=g) * 0.1)


@torch.no_grad()
def randomise(model, seed):
    """The whole model."""
    g = torch.Generator().manual_seed(seed)
    for b in list(model.layers) + [model.mtp]:
        randomise_block(b, g)
    d = model.cfg["hidden_size"]
    model.embed.copy_(torch.randn(model.embed.shape, generator=g))
    model.head.copy_(torch.randn(model.head.shape, generator=g) * 2 * d ** -0.5)
    for name in ("norm", "hc_head_fn", "hc_head_base"):
        p = getattr(model, name)
        p.copy_(draw("norm.weight" if name == "norm" else name, p, g))
    return model


@torch.no_grad()
def random_stages(seed):
    """DSpark stages."""
    g = torch.Generator().manual_seed(seed)
    stages = dspark.new_stages(CFG)
    for b in stages:
        randomise_block(b, g)
    return stages


def main(out, tokenizer, backbone=None):
    torch.manual_seed(20)
    if backbone is None:
        checkpoint.export(randomise(Nano(), 20), out)
    else:
        own = checkpoint.load(backbone)
        checkpoint.export(own, out, stages=random_stages(21), backbone_of=os.path.basename(os.path.normpath(backbone)))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(tokenizer, name), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
