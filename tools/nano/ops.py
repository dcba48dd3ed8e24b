"""The model's pieces as pure functions on tensors; `compile_ops()` replaces them by compiled versions for training.

Shapes: B sequences of T tokens, N = B*T rows; D hidden; H heads; C compressed rows of a sequence.
Sources: model.md 2.0-2.12.  Attention works in blocks of 128 tokens, so T is a multiple of 128 everywhere.
"""
import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from formats import act_sim, fp4_sim, hadamard

try:
    import sinkhorn_cuda
except ImportError:
    sinkhorn_cuda = None

NEG = float("-inf")


def rope_freqs(cfg, compressed):
    """32 inverse frequencies: table A (plain) or table B (YaRN), model.md 2.4."""
    d = cfg["qk_rope_head_dim"]
    base = cfg["compress_rope_theta"] if compressed else cfg["rope_theta"]
    f = 1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.float32) / d))
    if not compressed:
        return f

    def corr(rot):
        return d * math.log(cfg["rope_orig"] / (rot * 2 * math.pi)) / (2 * math.log(base))
    lo, hi = math.floor(corr(cfg["beta_fast"])), math.ceil(corr(cfg["beta_slow"]))
    ramp = ((torch.arange(d // 2, dtype=torch.float32) - lo) / (hi - lo)).clamp(0, 1)
    return f * (1 - ramp) + f / cfg["rope_factor"] * ramp


def rope_table(cfg, compressed, pos):
    """Positions [n] -> cos, sin [n, 32]; the angle is a float32 product."""
    a = pos.float()[:, None] * rope_freqs(cfg, compressed).to(pos.device)[None]
    return a.cos(), a.sin()


def rotate(x, cos, sin):
    """Rotates the last 64 dims of x in interleaved pairs; cos/sin broadcast against [..., 32]."""
    r = x[..., -64:].float().unflatten(-1, (32, 2))
    a, b = r[..., 0], r[..., 1]
    y = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    return torch.cat((x[..., :-64], y.to(x.dtype)), -1)


def rms(x, w, eps=1e-6):
    """RMS norm with weight, in float32."""
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


def kv_sim(row, sim):
    """Native mode stores the 448 non-rotated dims of a row in E4M3 blocks of 64."""
    return torch.cat((act_sim(row[..., :448], 64), row[..., 448:]), -1) if sim else row


# ---------------------------------------------------------------- hyper-connections
def hc_mix(X, fn, scale, base, eps, hc_eps):
    """X [N,4,D] -> (y [N,D], post [N,4], logits of the stream mixing [N,4,4])."""
    f = X.flatten(1)
    r = torch.rsqrt(f.float().square().mean(-1, keepdim=True) + eps)
    m = F.linear(f, fn.to(f.dtype)).float() * r
    pre = torch.sigmoid(m[:, :4] * scale[0] + base[:4]) + hc_eps
    post = 2 * torch.sigmoid(m[:, 4:8] * scale[1] + base[4:8])
    z = (m[:, 8:] * scale[2] + base[8:]).view(-1, 4, 4)
    y = (pre[..., None] * X.float()).sum(1).to(X.dtype)
    return y, post, z


def hc_post(o, X, post, c):
    """Sub-layer output o [N,D] back into the streams; column j of c feeds stream j."""
    x = X.float()
    y = post[..., None] * o.float()[:, None, :]
    for i in range(4):
        y = y + c[:, i, :, None] * x[:, i, None, :]
    return y.to(X.dtype)


def hc_head(X, fn, scale, base, eps, hc_eps):
    """Streams -> one vector [N,D]."""
    f = X.flatten(1)
    r = torch.rsqrt(f.float().square().mean(-1, keepdim=True) + eps)
    g = torch.sigmoid(F.linear(f, fn.to(f.dtype)).float() * r * scale + base) + hc_eps
    return (g[..., None] * X.float()).sum(1).to(X.dtype)


def sinkhorn_plain(z, iters=20, eps=1e-6):
    """Row softmax, then alternating column and row normalisation (model.md 2.2)."""
    c = z.softmax(-1) + eps
    c = c / (c.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + eps)
        c = c / (c.sum(-2, keepdim=True) + eps)
    return c


def sinkhorn(z, iters, eps):
    """The fused kernel where it exists and is switched on, else the plain form."""
    if sinkhorn_cuda is not None and sinkhorn_cuda.ENABLED and z.is_cuda:
        return sinkhorn_cuda.SinkhornFn.apply(z, iters, eps)
    return sinkhorn_plain(z, iters, eps)


# ---------------------------------------------------------------- attention
def qkv(x, wq_a, q_norm, wq_b, wkv, kv_norm, cos, sin, heads, sim):
    """x [B,T,D] -> (qr [B,T,R], q [B,T,H,512], kv [B,T,512]), rotated."""
    xq = act_sim(x, 128) if sim else x
    qr = rms(F.linear(xq, wq_a), q_norm)
    q = F.linear(act_sim(qr, 128) if sim else qr, wq_b).unflatten(-1, (heads, 512))
    qf = q.float()
    q = (qf * torch.rsqrt(qf.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
    q = rotate(q, cos.unsqueeze(-2), sin.unsqueeze(-2))
    return qr, q, latent(xq, wkv, kv_norm, cos, sin, sim)


def latent(xq, wkv, kv_norm, cos, sin, sim):
    """The key-and-value row of each token."""
    return kv_sim(rotate(rms(F.linear(xq, wkv), kv_norm), cos, sin), sim)


def compress(x, wkv, wgate, ape, norm, ratio, cos, sin):
    """x [B,T,D] -> rows [B,T/ratio,d]; ratio 4 overlaps with the previous window (model.md 2.6)."""
    n = x.shape[1] // ratio
    kv = F.linear(x, wkv.to(x.dtype)).float().unflatten(1, (n, ratio))
    sc = F.linear(x, wgate.to(x.dtype)).float().unflatten(1, (n, ratio)) + ape
    if ratio == 4:
        d = kv.shape[-1] // 2
        pv = torch.cat((torch.zeros_like(kv[:, :1, :, :d]), kv[:, :-1, :, :d]), 1)
        ps = torch.cat((torch.full_like(sc[:, :1, :, :d], NEG), sc[:, :-1, :, :d]), 1)
        kv, sc = torch.cat((pv, kv[..., d:]), 2), torch.cat((ps, sc[..., d:]), 2)
    z = (kv * sc.softmax(2)).sum(2).to(x.dtype)
    return rotate(rms(z, norm), cos, sin)


def index_scores(qr, x, wq_b, wproj, keys, cos, sin, heads, sim):
    """Indexer scores [B,T,C] of every query against every index key."""
    b, t, _ = x.shape
    q = F.linear(act_sim(qr, 128) if sim else qr, wq_b).unflatten(-1, (heads, 128))
    q = rotate(q, cos.unsqueeze(-2), sin.unsqueeze(-2))
    if sim:
        q, keys = fp4_sim(hadamard(q)), fp4_sim(hadamard(keys))
    w = F.linear(x, wproj.to(x.dtype)).float() * (128 ** -0.5 * heads ** -0.5)
    s = torch.matmul(q.reshape(b, t * heads, 128), keys.transpose(-1, -2)).view(b, t, heads, -1)
    return (torch.relu(s.float()) * w[..., None]).sum(2)


def attend(q, kv, comp, cmask, sink, cos, sin, want):
    """Window of 128 raw rows plus masked compressed rows.

    q [B,T,H,512], kv [B,T,512], comp [B,C,512] or None, cmask [B or 1,T,C] bool.
    Returns (o [B,T,H,512] rotated back, attention mass on compressed rows [B,T,C] if want).
    """
    b, t, h, d = q.shape
    nb = t // 128
    kb = kv.view(b, nb, 128, d)
    kk = torch.cat((torch.cat((torch.zeros_like(kb[:, :1]), kb[:, :-1]), 1), kb), 2)
    s1 = torch.matmul(q.reshape(b, nb, 128 * h, d), kk.transpose(-1, -2)).view(b, nb, 128, h, 256).float() * d ** -0.5
    i = torch.arange(128, device=q.device)[:, None]
    j = torch.arange(256, device=q.device)[None]
    first = torch.arange(nb, device=q.device)[:, None, None] == 0
    win = ((j > i) & (j <= i + 128))[None] & (~first | (j >= 128)[None])
    s1 = s1.masked_fill(~win[None, :, :, None], NEG)
    sk = sink.float().view(1, 1, 1, h, 1)
    m = torch.maximum(s1.amax(-1, keepdim=True), sk)
    mass = None
    if comp is None:
        m = m.detach()
        p1 = torch.exp(s1 - m)
        p1 = p1 / (p1.sum(-1, keepdim=True) + torch.exp(sk - m))
        o = torch.matmul(p1.to(q.dtype).view(b, nb, 128 * h, 256), kk).view(b, t, h, d)
    else:
        c = comp.shape[1]
        s2 = torch.matmul(q.reshape(b, t * h, d), comp.transpose(-1, -2)).view(b, nb, 128, h, c).float() * d ** -0.5
        s2 = s2.masked_fill(~cmask.view(-1, nb, 128, 1, c), NEG)
        m = torch.maximum(m, s2.amax(-1, keepdim=True)).detach()
        p1, p2 = torch.exp(s1 - m), torch.exp(s2 - m)
        zinv = 1.0 / (p1.sum(-1, keepdim=True) + p2.sum(-1, keepdim=True) + torch.exp(sk - m))
        p1, p2 = p1 * zinv, p2 * zinv
        o = torch.matmul(p1.to(q.dtype).view(b, nb, 128 * h, 256), kk).view(b, t, h, d)
        o = o + torch.matmul(p2.to(q.dtype).view(b, t * h, c), comp).view(b, t, h, d)
        if want:
            mass = p2.detach().sum(3).view(b, t, c)
    return rotate(o, cos.unsqueeze(-2), -sin.unsqueeze(-2)), mass


def index_kl(mass, scores, vis):
    """KL(attention mass on the allowed rows || softmax of the index scores), mean over tokens with any such row."""
    p = mass / (mass.sum(-1, keepdim=True) + 1e-9)
    lq = torch.log_softmax(scores.masked_fill(~vis, -1e4), -1)
    kl = (p * (torch.log(p + 1e-9) - lq)).masked_fill(~vis, 0.0).sum(-1)
    ok = vis.any(-1).expand(kl.shape).float()
    return (kl * ok).sum() / ok.sum().clamp_min(1.0)


# ---------------------------------------------------------------- experts
def swiglu(gu, limit):
    """Clamped SwiGLU of [..., 2I] = gate then up."""
    g, u = gu.float().chunk(2, -1)
    return F.silu(g.clamp(max=limit)) * u.clamp(-limit, limit)


def route(x, gate, bias, idx, top_k, scale):
    """Router: x [N,D] -> (gates [N,E], 0 where not selected; expert ids [N,K]; scores [N,E]).

    idx: expert ids of a hash layer, or None to take the top-k of score + bias.
    """
    s = F.softplus(F.linear(x.float(), gate.float())).sqrt()
    if idx is None:
        idx = (s.detach() + bias).topk(top_k, -1).indices
    g = s.gather(1, idx)
    g = g / g.sum(-1, keepdim=True) * scale
    return torch.zeros_like(s).scatter(1, idx, g), idx, s


def experts(x, gates, w13, w2, s13, s2, limit, sim):
    """Routed plus shared experts.  x [N,D], gates [N,E] (0 where not selected), w13 [E,2I,D], w2 [E,D,I].

    Every expert is computed for every token and weighted: with 8 small experts this beats gathering.
    """
    if not x.is_cuda:
        return experts_sparse(x, gates, w13, w2, s13, s2, limit, sim)
    n, e = gates.shape
    xq = act_sim(x, 128) if sim else x
    h = swiglu(F.linear(xq, w13.flatten(0, 1)).view(n, e, -1), limit) * gates[..., None]
    s = swiglu(F.linear(xq, s13), limit).to(x.dtype)
    h = h.to(x.dtype)
    if sim:
        h, s = act_sim(h, 128), act_sim(s, 128)
    return F.linear(h.view(n, -1), w2.transpose(0, 1).flatten(1)) + F.linear(s, s2)


def experts_sparse(x, gates, w13, w2, s13, s2, limit, sim):
    """The same result, computing only the selected experts (for CPUs)."""
    xq = act_sim(x, 128) if sim else x
    y = F.linear(swiglu_sim(F.linear(xq, s13), limit, sim, x.dtype), s2)
    for e in range(gates.shape[1]):
        t = gates[:, e].nonzero()[:, 0]
        if len(t):
            h = swiglu(F.linear(xq[t], w13[e]), limit) * gates[t, e, None]
            h = act_sim(h.to(x.dtype), 128) if sim else h.to(x.dtype)
            y = y.index_add(0, t, F.linear(h, w2[e]))
    return y


def swiglu_sim(gu, limit, sim, dtype):
    """SwiGLU with the activation quantisation of native mode."""
    h = swiglu(gu, limit).to(dtype)
    return act_sim(h, 128) if sim else h


def cross_entropy(h, head, target):
    """Mean next-token loss of final hidden rows; targets below 0 do not count."""
    return F.cross_entropy(F.linear(h, head).float(), target, ignore_index=-1)


ops = SimpleNamespace(hc_mix=hc_mix, hc_post=hc_post, hc_head=hc_head, rms=rms, qkv=qkv, latent=latent,
                      compress=compress, index_scores=index_scores, attend=attend, index_kl=index_kl,
                      route=route, experts=experts, cross_entropy=cross_entropy)


def compile_ops():
    """Switches to compiled pieces (one graph per shape)."""
    for name, fn in list(vars(ops).items()):
        setattr(ops, name, torch.compile(fn, dynamic=False))
