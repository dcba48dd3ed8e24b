"""A checkpoint folder as transformers' DeepseekV4ForCausalLM in float32 on the dequantised weights.

Weights are set by name (not by from_pretrained, which would quantise activations).  Where transformers' releases differ
from model.md, the difference is removed here: the rotary tables are overwritten by ours (no YaRN attention factor) and
the shared expert clamps like the routed ones.
"""
import json
import os

import torch
from transformers.models.deepseek_v4.configuration_deepseek_v4 import DeepseekV4Config
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4ForCausalLM

import checkpoint
from ops import rope_freqs
from shape import CFG

ATTENTION = {
    "wq_a.weight": "q_a_proj.weight", "q_norm.weight": "q_a_norm.weight", "wq_b.weight": "q_b_proj.weight",
    "wkv.weight": "kv_proj.weight", "kv_norm.weight": "kv_norm.weight", "wo_a.weight": "o_a_proj.weight",
    "wo_b.weight": "o_b_proj.weight", "attn_sink": "sinks", "compressor.wkv.weight": "compressor.kv_proj.weight",
    "compressor.wgate.weight": "compressor.gate_proj.weight", "compressor.ape": "compressor.position_bias",
    "compressor.norm.weight": "compressor.kv_norm.weight", "indexer.wq_b.weight": "compressor.indexer.q_b_proj.weight",
    "indexer.weights_proj.weight": "compressor.indexer.scorer.weights_proj.weight",
    "indexer.compressor.wkv.weight": "compressor.indexer.kv_proj.weight",
    "indexer.compressor.wgate.weight": "compressor.indexer.gate_proj.weight",
    "indexer.compressor.ape": "compressor.indexer.position_bias",
    "indexer.compressor.norm.weight": "compressor.indexer.kv_norm.weight"}
GATE = {"ffn.gate.weight": "mlp.gate.weight", "ffn.gate.bias": "mlp.gate.e_score_correction_bias",
        "ffn.gate.tid2eid": "mlp.gate.tid2eid"}
SHARED = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}


def layer_state(t, i, n_experts):
    """transformers names -> tensors of layer i."""
    o, n, sd = f"layers.{i}.", f"model.layers.{i}.", {}
    for k in t:
        s = k[len(o):]
        if not k.startswith(o) or s.startswith("ffn.experts."):
            continue
        if s.startswith("attn."):
            sd[n + "self_attn." + ATTENTION[s[5:]]] = t[k]
        elif s in ("attn_norm.weight", "ffn_norm.weight"):
            sd[n + ("input_layernorm" if s[0] == "a" else "post_attention_layernorm") + ".weight"] = t[k]
        elif s.startswith("hc_"):
            _, site, what = s.split("_")
            sd[n + f"{site}_hc.{what}"] = t[k]
        elif s in GATE:
            sd[n + GATE[s]] = t[k]
        else:
            sd[n + f"mlp.shared_experts.{SHARED[s.split('.')[2]]}.weight"] = t[k]

    def get(e, w):
        return t[f"{o}ffn.experts.{e}.{w}.weight"]
    sd[n + "mlp.experts.gate_up_proj"] = torch.stack([torch.cat((get(e, "w1"), get(e, "w3"))) for e in range(n_experts)])
    sd[n + "mlp.experts.down_proj"] = torch.stack([get(e, "w2") for e in range(n_experts)])
    return sd


def state(t, cfg):
    """The whole state dict."""
    sd = {"model.embed_tokens.weight": t["embed.weight"], "lm_head.weight": t["head.weight"],
          "model.norm.weight": t["norm.weight"]}
    sd.update({f"model.hc_head.hc_{w}": t[f"hc_head_{w}"] for w in ("fn", "base", "scale")})
    for i in range(cfg["num_hidden_layers"]):
        sd.update(layer_state(t, i, cfg["n_routed_experts"]))
    return sd


def hf_config(path):
    """DeepseekV4Config with both rotary tables spelt out."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        cfg = json.load(f)
    drop = ("quantization_config", "architectures", "torch_dtype", "transformers_version", "rope_scaling", "topk_method",
            "expert_dtype", "model_type")
    kw = {k: v for k, v in cfg.items() if k not in drop and not k.startswith("dspark")}
    part = cfg["qk_rope_head_dim"] / cfg["head_dim"]
    yarn = {k: v for k, v in cfg["rope_scaling"].items() if k != "type"}
    kw["rope_parameters"] = {
        "main": {"rope_type": "default", "rope_theta": cfg["rope_theta"], "partial_rotary_factor": part},
        "compress": {"rope_type": "yarn", "rope_theta": cfg["compress_rope_theta"], "partial_rotary_factor": part,
                     "attention_factor": 1.0, **yarn}}
    return cfg, DeepseekV4Config(**kw)


def patch(model):
    """Removes differences to model.md; returns what was found."""
    found, limit = {}, model.config.swiglu_limit
    for m in model.modules():
        for label in ("main", "compress"):
            buf = getattr(m, f"{label}_inv_freq", None)
            if buf is not None:
                ours = rope_freqs(CFG, label == "compress").to(buf.device)
                found[label] = max(found.get(label, 0.0), ((buf - ours).abs() / ours).max().item())
                found[label + "_factor"] = getattr(m, f"{label}_attention_scaling", None)
                buf.copy_(ours)
                setattr(m, f"{label}_attention_scaling", 1.0)
        if type(m).__name__ == "DeepseekV4MLP":
            def forward(x, m=m):
                gate, up = m.gate_proj(x).clamp(max=limit), m.up_proj(x).clamp(min=-limit, max=limit)
                return m.down_proj(torch.nn.functional.silu(gate) * up)
            m.forward = forward
    return found


def load(path, device="cuda"):
    """Folder -> (model, what patch found)."""
    cfg, hc = hf_config(path)
    hc._attn_implementation = "eager"
    hc._experts_implementation = "eager"
    torch.set_default_dtype(torch.float32)
    model = DeepseekV4ForCausalLM(hc)
    sd = state(checkpoint.dequant(checkpoint.read_all(path)), cfg)
    if "model.layers.2.self_attn.compressor.indexer.weights_proj.weight" in model.state_dict():
        sd = {k.replace("indexer.scorer.", "indexer."): v for k, v in sd.items()}
    r = model.load_state_dict(sd, strict=False)
    missing = [k for k in r.missing_keys if "inv_freq" not in k]
    if missing or r.unexpected_keys:
        raise ValueError(f"missing {missing[:4]}, unexpected {r.unexpected_keys[:4]}")
    model = model.to(device).float().eval()
    with torch.no_grad():
        found = patch(model)
    print("transformers config:", hc.layer_types, hc.mlp_layer_types, found, flush=True)
    return model, found
