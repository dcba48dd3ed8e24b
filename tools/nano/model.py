"""The nano model in PyTorch: DeepSeek-V4-Flash's architecture with one MTP block, for training and as reference.

Parameters carry the official checkpoint names, except that the experts are fused (ffn.experts.w13 [E,2I,D],
ffn.experts.w2 [E,D,I], ffn.shared_experts.w13 [2I,D]; w13 = gate rows then up rows).  T is a multiple of 128.
"""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from formats import act_sim
from ops import ops, rope_table, sinkhorn
from shape import CFG

FP8_NAMES = ("attn.wq_a.weight", "attn.wq_b.weight", "attn.wkv.weight", "attn.wo_a.weight", "attn.wo_b.weight",
             "attn.indexer.wq_b.weight", "ffn.shared_experts.w13", "ffn.shared_experts.w2.weight", "e_proj.weight",
             "h_proj.weight", "main_proj.weight")
FP4_NAMES = ("ffn.experts.w13", "ffn.experts.w2")


class Straight(torch.autograd.Function):
    """Value of the second argument, gradient to the first."""

    @staticmethod
    def forward(ctx, master, value):
        return value

    @staticmethod
    def backward(ctx, grad):
        return grad.float(), None


class Lookup(torch.autograd.Function):
    """Embedding rows [N,D]; the gradient is summed with atomics, which is much faster than sorting the ids."""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return table[ids]

    @staticmethod
    def backward(ctx, grad):
        ids, = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, grad.shape[1], dtype=torch.float32).index_add_(0, ids, grad.float()), None


@dataclass
class Run:
    """Options of one forward pass, and what it records."""
    batch: int = 0
    length: int = 0
    train: bool = False         # collect the indexer and balance losses
    select: bool = True         # CSA attends to the indexer's top-k only (else to every visible row)
    sim: bool = False           # native mode: activation quantisation as the engine's `native`
    kl: object = 0.0
    balance: object = 0.0
    routes: list = None         # (expert ids [N,K], weights [N,K]) per block
    index: list = None          # (block, scores [B,T,C]) per CSA layer
    hidden: list = None         # streams [N,4,D] after each layer
    loads: list = field(default_factory=list)


def hash_table(cfg):
    """tid2eid of each hash layer: token id -> distinct experts, pseudo-random with a fixed seed."""
    out = []
    for layer in range(cfg["num_hash_layers"]):
        g = torch.Generator().manual_seed(1000 + layer)
        r = torch.rand(cfg["vocab_size"], cfg["n_routed_experts"], generator=g)
        out.append(r.argsort(-1)[:, :cfg["num_experts_per_tok"]].contiguous())
    return out


class Block(nn.Module):
    """One decoder layer; also the body of the MTP block and of the DSpark stages."""

    def __init__(self, cfg, layer, extra=None):
        super().__init__()
        n_layers = cfg["num_hidden_layers"]
        self.cfg, self.layer = cfg, layer
        self.ratio = cfg["compress_ratios"][layer] if layer < n_layers else 0
        self.hash = layer < cfg["num_hash_layers"]
        p = self.initial()
        p.update(extra or {})
        self.p = nn.ParameterDict({k.replace(".", "/"): nn.Parameter(v) for k, v in p.items()})
        if not self.hash:
            self.register_buffer("gate_bias", torch.zeros(cfg["n_routed_experts"]))

    def initial(self):
        """Start values for training."""
        cfg, p = self.cfg, {}
        d, h, hd, qr = cfg["hidden_size"], cfg["num_attention_heads"], cfg["head_dim"], cfg["q_lora_rank"]
        e, i, og, ol = cfg["n_routed_experts"], cfg["moe_intermediate_size"], cfg["o_groups"], cfg["o_lora_rank"]

        def lin(name, rows, cols, std=None):
            p[name] = torch.randn(rows, cols) * (0.5 * cols ** -0.5 if std is None else std)
        lin("attn.wq_a.weight", qr, d)
        lin("attn.wq_b.weight", h * hd, qr)
        lin("attn.wkv.weight", hd, d)
        lin("attn.wo_a.weight", og * ol, h * hd // og)
        lin("attn.wo_b.weight", d, og * ol)
        p["attn.q_norm.weight"], p["attn.kv_norm.weight"] = torch.ones(qr), torch.ones(hd)
        p["attn.attn_sink"] = torch.zeros(h)
        p["attn_norm.weight"], p["ffn_norm.weight"] = torch.ones(d), torch.ones(d)
        if self.ratio:
            self._compressor(lin, p, "attn.compressor.", hd, d)
        if self.ratio == 4:
            lin("attn.indexer.wq_b.weight", cfg["index_n_heads"] * 128, qr)
            lin("attn.indexer.weights_proj.weight", cfg["index_n_heads"], d)
            self._compressor(lin, p, "attn.indexer.compressor.", 128, d)
        lin("ffn.gate.weight", e, d, 0.02)
        p["ffn.experts.w13"] = torch.randn(e, 2 * i, d) * 0.5 * d ** -0.5
        p["ffn.experts.w2"] = torch.randn(e, d, i) * 0.5 * i ** -0.5
        lin("ffn.shared_experts.w13", 2 * i, d)
        lin("ffn.shared_experts.w2.weight", d, i)
        for site in ("attn", "ffn"):
            base = torch.zeros(24)
            base[:4] = -1.1                                  # about a quarter of each stream
            base[8:] = (torch.eye(4) * 4.0).flatten()        # nearly the identity
            p[f"hc_{site}_fn"] = torch.randn(24, 4 * d) * 0.1 * (4 * d) ** -0.5
            p[f"hc_{site}_base"], p[f"hc_{site}_scale"] = base, torch.full((3,), 0.5)
        return p

    def _compressor(self, lin, p, prefix, dim, d):
        width = dim * (2 if self.ratio == 4 else 1)
        lin(prefix + "wkv.weight", width, d)
        lin(prefix + "wgate.weight", width, d, 0.01)
        p[prefix + "ape"] = torch.randn(self.ratio, width) * 0.02
        p[prefix + "norm.weight"] = torch.ones(dim)

    def weights(self, dtype, rounded=None, tid2eid=None):
        """Weights by official name in compute precision.

        rounded: parameter -> its value rounded to the checkpoint's format (see quantise.py); gradients pass straight.
        """
        out = {}
        for key, v in self.p.items():
            name = key.replace("/", ".")
            if name in FP8_NAMES or name in FP4_NAMES:
                v = Straight.apply(v, rounded[v].to(dtype)) if rounded else v.to(dtype)
            out[name] = v
        if tid2eid is not None:
            out["tid2eid"] = tid2eid
        return out

    # ------------------------------------------------------------ the two halves
    def site(self, X, w, name, norm):
        """Hyper-connection read: (normed input [N,D], post, mixing [N,4,4])."""
        cfg = self.cfg
        y, post, z = ops.hc_mix(X, w[f"hc_{name}_fn"], w[f"hc_{name}_scale"], w[f"hc_{name}_base"], cfg["eps"], cfg["hc_eps"])
        return ops.rms(y, w[norm]), post, sinkhorn(z, cfg["hc_sinkhorn_iters"], cfg["hc_eps"])

    def compressed(self, x, qr, w, rope, run):
        """(rows [B,C,512], mask [B or 1,T,C], index scores or None, visibility)."""
        r, t = self.ratio, run.length
        cos, sin = rope["rows", r]
        names = ("wkv.weight", "wgate.weight", "ape", "norm.weight")
        comp = ops.compress(x, *(w["attn.compressor." + k] for k in names), r, cos, sin)
        if run.sim:
            comp = torch.cat((act_sim(comp[..., :448], 64), comp[..., 448:]), -1)
        c = t // r
        vis = (torch.arange(c, device=x.device)[None] < ((torch.arange(t, device=x.device) + 1) // r)[:, None])[None]
        if r != 4:
            return comp, vis, None, vis
        if run.train:
            x, qr = x.detach(), qr.detach()
        keys = ops.compress(x, *(w["attn.indexer.compressor." + k] for k in names), 4, cos, sin)
        cos, sin = rope["tokens", True]
        scores = ops.index_scores(qr, x, w["attn.indexer.wq_b.weight"], w["attn.indexer.weights_proj.weight"], keys, cos,
                                  sin, self.cfg["index_n_heads"], run.sim)
        if run.index is not None:
            run.index.append((self.layer, scores))
        mask, k = vis, self.cfg["index_topk"]
        if run.select and c > k:
            with torch.no_grad():
                s = scores.detach().masked_fill(~vis, float("-inf"))
                mask = (s >= s.topk(k, -1).values[..., -1:]) & vis
        return comp, mask, scores, vis

    def attention(self, x, w, rope, run):
        """x [N,D] -> [N,D]."""
        cfg, b, t = self.cfg, run.batch, run.length
        x = x.view(b, t, -1)
        cos, sin = rope["tokens", self.ratio > 0]
        qr, q, kv = ops.qkv(x, w["attn.wq_a.weight"], w["attn.q_norm.weight"], w["attn.wq_b.weight"],
                            w["attn.wkv.weight"], w["attn.kv_norm.weight"], cos, sin, cfg["num_attention_heads"], run.sim)
        comp = mask = scores = None
        if self.ratio:
            comp, mask, scores, _ = self.compressed(x, qr, w, rope, run)
        want = run.train and scores is not None
        o, mass = ops.attend(q, kv, comp, mask, w["attn.attn_sink"], cos, sin, want)
        if want:
            run.kl = run.kl + ops.index_kl(mass, scores, mask.expand(b, t, -1))
        return self.project(o.reshape(b * t, -1), w, run.sim)

    def project(self, o, w, sim):
        """Grouped low-rank output projection of [N, H*512]."""
        og, ol = self.cfg["o_groups"], self.cfg["o_lora_rank"]
        wo = w["attn.wo_a.weight"].view(og, ol, -1)
        u = torch.matmul(o.view(len(o), og, -1).transpose(0, 1), wo.transpose(1, 2)).transpose(0, 1).reshape(-1, og * ol)
        return F.linear(act_sim(u, 128) if sim else u, w["attn.wo_b.weight"])

    def moe(self, x, w, ids, run):
        """x [N,D], ids [N] token ids -> [N,D]."""
        cfg = self.cfg
        idx = w["tid2eid"][ids] if self.hash else None
        bias = None if self.hash else self.gate_bias
        gates, idx, s = ops.route(x, w["ffn.gate.weight"], bias, idx, cfg["num_experts_per_tok"], cfg["routed_scaling_factor"])
        if run.routes is not None:
            run.routes.append((idx, gates.gather(1, idx)))
        if run.train and not self.hash:
            load = (gates.detach() > 0).float().mean(0) / cfg["num_experts_per_tok"]
            run.loads.append((self, load))
            run.balance = run.balance + ((s / s.sum(-1, keepdim=True)).mean(0) * load).sum() * s.shape[1]
        return ops.experts(x, gates, w["ffn.experts.w13"], w["ffn.experts.w2"], w["ffn.shared_experts.w13"],
                           w["ffn.shared_experts.w2.weight"], cfg["swiglu_limit"], run.sim)

    def feed_forward(self, X, w, ids, run):
        """The second half of the block."""
        x, post, c = self.site(X, w, "ffn", "ffn_norm.weight")
        return ops.hc_post(self.moe(x, w, ids, run), X, post, c)

    def forward(self, X, w, ids, rope, run):
        """X [N,4,D] -> [N,4,D]."""
        x, post, c = self.site(X, w, "attn", "attn_norm.weight")
        X = ops.hc_post(self.attention(x, w, rope, run), X, post, c)
        return self.feed_forward(X, w, ids, run)


def head_parts(cfg):
    """Start values of a hyper-connection head."""
    d = cfg["hidden_size"]
    return {"hc_head_fn": torch.randn(4, 4 * d) * 0.002, "hc_head_base": torch.full((4,), -1.1),
            "hc_head_scale": torch.full((1,), 0.5)}


def mtp_parts(cfg):
    """Start values of what an MTP block has beside the layer."""
    d = cfg["hidden_size"]
    out = {n + ".weight": torch.ones(d) for n in ("enorm", "hnorm", "norm")}
    out.update({n + ".weight": torch.randn(d, d) * 0.5 * d ** -0.5 for n in ("e_proj", "h_proj")})
    out.update(head_parts(cfg))
    return out


class Nano(nn.Module):
    """Backbone and MTP block."""

    def __init__(self, cfg=CFG):
        super().__init__()
        self.cfg = cfg
        d, v = cfg["hidden_size"], cfg["vocab_size"]
        self.embed = nn.Parameter(torch.randn(v, d) * 0.5)
        self.head = nn.Parameter(torch.randn(v, d) * 0.5 * d ** -0.5)
        self.norm = nn.Parameter(torch.ones(d))
        for k, x in head_parts(cfg).items():
            setattr(self, k, nn.Parameter(x))
        self.layers = nn.ModuleList([Block(cfg, i) for i in range(cfg["num_hidden_layers"])])
        self.mtp = Block(cfg, cfg["num_hidden_layers"], mtp_parts(cfg))
        for i, t in enumerate(hash_table(cfg)):
            self.register_buffer(f"tid2eid_{i}", t)

    def rope(self, t, device):
        """Rope tables for T tokens: keys ("tokens", compressed?) and ("rows", ratio)."""
        pos = torch.arange(t, device=device)
        return {("tokens", False): rope_table(self.cfg, False, pos), ("tokens", True): rope_table(self.cfg, True, pos),
                ("rows", 4): rope_table(self.cfg, True, pos[::4]), ("rows", 128): rope_table(self.cfg, True, pos[::128])}

    def collapse(self, X, w, norm):
        """Streams -> final normed hidden [N,D]."""
        h = ops.hc_head(X, w["hc_head_fn"], w["hc_head_scale"], w["hc_head_base"], self.cfg["eps"], self.cfg["hc_eps"])
        return ops.rms(h, norm)

    def backbone(self, ids, dtype=torch.float32, rounded=None, run=None):
        """ids [B,T] -> (h [N,D] ready for the head, streams [N,4,D] after the last layer)."""
        run = run or Run()
        run.batch, run.length = ids.shape
        rope, flat = self.rope(ids.shape[1], ids.device), ids.reshape(-1)
        X = Lookup.apply(self.embed, flat).to(dtype)[:, None].expand(-1, 4, -1).contiguous()
        for b in self.layers:
            w = b.weights(dtype, rounded, getattr(self, f"tid2eid_{b.layer}") if b.hash else None)
            X = b(X, w, flat, rope, run)
            if run.hidden is not None:
                run.hidden.append(X)
        own = {k: getattr(self, k) for k in ("hc_head_fn", "hc_head_scale", "hc_head_base")}
        return self.collapse(X, own, self.norm), X

    def draft(self, X, next_ids, dtype=torch.float32, rounded=None, run=None):
        """MTP: streams X [N,4,D] of slots and the tokens that follow them -> (h for the head, new streams)."""
        run = run or Run()
        run.batch, run.length = next_ids.shape
        flat, w = next_ids.reshape(-1), self.mtp.weights(dtype, rounded)

        def sim(t):
            return act_sim(t, 128) if run.sim else t
        e = ops.rms(Lookup.apply(self.embed, flat).to(dtype), w["enorm.weight"])
        x = ops.rms(X, w["hnorm.weight"])
        Y = F.linear(sim(e), w["e_proj.weight"])[:, None] + F.linear(sim(x), w["h_proj.weight"])
        Y = self.mtp(Y, w, flat, self.rope(next_ids.shape[1], next_ids.device), run)
        return self.collapse(Y, w, w["norm.weight"]), Y

    def logits(self, h):
        """Final hidden rows -> vocabulary, float32."""
        return F.linear(h.float(), self.head.float())
