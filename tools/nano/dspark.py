"""DSpark draft stages (0731 form) on a frozen backbone: parameters, the draft pass, and one reference step.

Source: model.md 2.15.  M anchors are drafted at once; each has 5 slots that see the stage's context rows
(the last 128 accepted positions) and all 5 block rows.
"""
import torch
import torch.nn.functional as F
from torch import nn

from formats import act_sim
from model import Block, Run, head_parts
from ops import ops, rms, rope_table, rotate


def new_stages(cfg):
    """Three stages with start values for training."""
    d, v, r = cfg["hidden_size"], cfg["vocab_size"], cfg["dspark_markov_rank"]
    taps = len(cfg["dspark_target_layer_ids"])
    first = {"main_proj.weight": torch.randn(d, taps * d) * 0.5 * (taps * d) ** -0.5, "main_norm.weight": torch.ones(d)}
    last = {"norm.weight": torch.ones(d), "markov_head.markov_w1.weight": torch.randn(v, r) * 0.1,
            "markov_head.markov_w2.weight": torch.zeros(v, r), "confidence_head.proj.weight": torch.zeros(1, d + r)}
    last.update(head_parts(cfg))
    extras = [first] + [{}] * (cfg["dspark_stages"] - 2) + [last]
    return nn.ModuleList([Block(cfg, cfg["num_hidden_layers"] + i, e) for i, e in enumerate(extras)])


def stage_weights(stages, dtype=torch.float32, rounded=None):
    """Weights of every stage."""
    return [s.weights(dtype, rounded) for s in stages]


def main_rows(weights, hidden, cfg, sim=False):
    """Streams after each layer [N,4,D] -> the draft's view of every position [N,D]."""
    u = torch.cat([hidden[i].float().mean(1).to(hidden[i].dtype) for i in cfg["dspark_target_layer_ids"]], -1)
    return rms(F.linear(act_sim(u, 128) if sim else u, weights[0]["main_proj.weight"]), weights[0]["main_norm.weight"])


def context_rows(w, main, cos, sin, sim=False):
    """Keys of accepted positions for one stage: main [...,D] -> [...,512]."""
    x = act_sim(main, 128) if sim else main
    return ops.latent(x, w["attn.wkv.weight"], w["attn.kv_norm.weight"], cos, sin, sim)


def block_attention(q, keys, ok, sink):
    """q [M,5,H,512], keys [M,C+5,512], ok [M,C+5] -> [M,5,H,512]; no causal mask."""
    m, s, h, d = q.shape
    l = torch.matmul(q.reshape(m, s * h, d), keys.transpose(1, 2)).view(m, s, h, -1).float() * d ** -0.5
    l = l.masked_fill(~ok[:, None, None], float("-inf"))
    l = torch.cat((l, sink.float().view(1, 1, h, 1).expand(m, s, h, 1)), -1)
    p = l.softmax(-1)[..., :-1].to(q.dtype)
    return torch.matmul(p.view(m, s * h, -1), keys).view(m, s, h, d)


def draft_pass(own, stages, weights, rows, ok, anchors, pos, noise, sim=False):
    """Hidden x [M,5,D] of the slots (before the norm) and their normed form.

    rows: per stage [M,128,512] context rows; ok [M,128] which exist; anchors [M] token ids at position pos+1.
    """
    cfg, m = own.cfg, len(anchors)
    slots = cfg["dspark_block_size"]
    ids = torch.full((m, slots), noise, dtype=torch.long, device=anchors.device)
    ids[:, 0] = anchors
    at = pos[:, None] + 1 + torch.arange(slots, device=pos.device)
    cos, sin = (t.view(m, slots, 32) for t in rope_table(cfg, False, at.reshape(-1)))
    dtype = weights[0]["attn.wkv.weight"].dtype
    X = own.embed.to(dtype)[ids.reshape(-1)][:, None].expand(-1, 4, -1).contiguous()
    ok = torch.cat((ok, torch.ones(m, slots, dtype=torch.bool, device=ok.device)), 1)
    run = Run(m, slots, sim=sim)
    for stage, w, ctx in zip(stages, weights, rows):
        x, post, c = stage.site(X, w, "attn", "attn_norm.weight")
        _, q, kv = ops.qkv(x.view(m, slots, -1), w["attn.wq_a.weight"], w["attn.q_norm.weight"], w["attn.wq_b.weight"],
                           w["attn.wkv.weight"], w["attn.kv_norm.weight"], cos, sin, cfg["num_attention_heads"], sim)
        o = block_attention(q, torch.cat((ctx, kv), 1), ok, w["attn.attn_sink"])
        o = rotate(o, cos.unsqueeze(-2), -sin.unsqueeze(-2)).reshape(m * slots, -1)
        X = ops.hc_post(stage.project(o, w, sim), X, post, c)
        X = stage.feed_forward(X, w, ids.reshape(-1), run)
    w = weights[-1]
    x = ops.hc_head(X, w["hc_head_fn"], w["hc_head_scale"], w["hc_head_base"], cfg["eps"], cfg["hc_eps"])
    return x.view(m, slots, -1), ops.rms(x, w["norm.weight"]).view(m, slots, -1)


def slot_logits(own, weights, normed, before):
    """normed [M,5,D], before [M,5] (token in front of each slot's prediction) -> logits [M,5,V] float32."""
    w = weights[-1]
    base = F.linear(normed.float(), own.head.float())
    return base + F.linear(w["markov_head.markov_w1.weight"].float()[before], w["markov_head.markov_w2.weight"].float())


def confidence(weights, x, before):
    """Raw confidence logits [M,5] (the consumer applies the sigmoid)."""
    w = weights[-1]
    m = w["markov_head.markov_w1.weight"].float()[before]
    return F.linear(torch.cat((x.float(), m), -1), w["confidence_head.proj.weight"].float())[..., 0]


def greedy_slots(own, weights, x, normed, anchors):
    """Sequential greedy drafting: tokens [M,5], logits [M,5,V], confidence [M,5]."""
    before, toks, logits, conf = anchors, [], [], []
    for i in range(normed.shape[1]):
        lg = slot_logits(own, weights, normed[:, i:i + 1], before[:, None])[:, 0]
        conf.append(confidence(weights, x[:, i:i + 1], before[:, None])[:, 0])
        before = lg.argmax(-1)
        toks.append(before)
        logits.append(lg)
    return torch.stack(toks, 1), torch.stack(logits, 1), torch.stack(conf, 1)


def draft_once(own, stages, hidden, anchor, p, noise=None):
    """Reference step in float32 for one sequence: hidden streams per layer, anchor token of position p+1."""
    noise = own.cfg["dspark_noise"] if noise is None else noise
    w = stage_weights(stages)
    main = main_rows(w, hidden, own.cfg)
    dev = main.device
    at = torch.arange(max(0, p - 127), p + 1, device=dev)
    cos, sin = rope_table(own.cfg, False, at)
    rows = [context_rows(ws, main[at], cos, sin)[None] for ws in w]
    ok = torch.ones(1, len(at), dtype=torch.bool, device=dev)
    a = torch.tensor([anchor], device=dev)
    x, normed = draft_pass(own, stages, w, rows, ok, a, torch.tensor([p], device=dev), noise)
    toks, logits, conf = greedy_slots(own, w, x, normed, a)
    return {"main": main[p], "tokens": toks[0].int(), "logits": logits[0], "confidence": conf[0], "hidden": x[0]}


def gather_context(weights, main, seq, pos, cfg, sim=False):
    """Context rows of anchors: main [B,T,D], sequences seq [M], positions pos [M] -> (per stage [M,128,512], ok [M,128])."""
    t = main.shape[1]
    at = pos[:, None] + torch.arange(-127, 1, device=pos.device)
    cos, sin = rope_table(cfg, False, torch.arange(t, device=pos.device))
    rows = [context_rows(w, main, cos, sin, sim)[seq[:, None], at.clamp_min(0)] for w in weights]
    return rows, at >= 0


def acceptance(own, stages, ids, inside, eos, per_row=24):
    """Mean number of drafted tokens that greedy verification accepts (0 to 5) on rows ids [B,T]; inside = answer tokens.

    A draft that follows text which is itself not the greedy choice cannot be judged and ends the count.
    """
    run = Run(hidden=[])
    h, _ = own.backbone(ids, run=run)
    main_next = own.logits(h).argmax(-1).view(ids.shape)
    w, (b, t) = stage_weights(stages), ids.shape
    main = main_rows(w, run.hidden, own.cfg).view(b, t, -1)
    good = inside.clone()
    good[:, 1:] &= main_next[:, :-1] == ids[:, 1:]      # anchors on the greedy path
    good &= ids != eos
    good[:, t - 8:] = False
    good[:, :2] = False
    g = torch.Generator(device=ids.device).manual_seed(5)
    pick = (torch.rand(ids.shape, device=ids.device, generator=g) * good).topk(per_row, 1)
    seq = torch.arange(b, device=ids.device)[:, None].expand(-1, per_row)[pick.values > 0]
    pos = pick.indices[pick.values > 0] - 1
    rows, ok = gather_context(w, main, seq, pos, own.cfg)
    x, normed = draft_pass(own, stages, w, rows, ok, ids[seq, pos + 1], pos, own.cfg["dspark_noise"])
    toks, _, _ = greedy_slots(own, w, x, normed, ids[seq, pos + 1])
    alive, count = torch.ones_like(pos, dtype=torch.bool), torch.zeros_like(pos)
    for i in range(toks.shape[1]):
        want = main_next[seq, pos + 1 + i]
        alive = alive & (toks[:, i] == want)
        count += alive
        alive = alive & (ids[seq, pos + 2 + i] == want) & (want != eos)
    return count.float().mean().item()
