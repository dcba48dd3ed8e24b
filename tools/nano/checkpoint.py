"""Writes and reads checkpoints in the official layout: names, dtypes, scales, three shards and an index."""
import json
import os
import struct

import torch

from formats import e8m0, fp4_expand, fp4_group, fp8_block, fp8_expand, pack_fp4, unpack_fp4
from model import FP8_NAMES, Nano
from shape import CFG, generation_config, hf_config

BF16_NAMES = ("norm.weight", "compressor.wkv.weight", "compressor.wgate.weight", "weights_proj.weight", "gate.weight",
              "markov_w1.weight", "markov_w2.weight", "confidence_head.proj.weight")
SHARDS = 3


def raw(dtype, t):
    """Bytes of a tensor."""
    t = t.detach().cpu().contiguous()
    if dtype == "BF16":
        return t.bfloat16().view(torch.int16).numpy().tobytes()
    if dtype == "F8_E4M3":
        return e4m3_bytes(t).numpy().tobytes()
    return t.numpy().tobytes()


def e4m3_bytes(q):
    """E4M3 values (float32) -> bytes."""
    if hasattr(torch, "float8_e4m3fn"):
        return q.to(torch.float8_e4m3fn).view(torch.uint8)
    a = q.abs()
    _, e = torch.frexp(a.clamp_min(2.0 ** -6))
    e = e - 1
    normal = a >= 2.0 ** -6
    frac = torch.where(normal, (torch.ldexp(a, -e) - 1) * 8, a * 512)
    code = torch.where(normal, (e + 7) * 8, torch.zeros_like(e)) + frac.round().int()
    return (code | (torch.signbit(q).int() << 7)).to(torch.uint8)


def e4m3_values(b):
    """Inverse of e4m3_bytes."""
    u = b.to(torch.int64) & 255
    e, f = (u >> 3) & 15, (u & 7).float()
    v = torch.where(e > 0, torch.ldexp(1 + f / 8, e - 7), f / 512)
    return torch.where(u >= 128, -v, v)


def block_tensors(prefix, b, tid=None):
    """Official tensors of one block: name -> (dtype, tensor)."""
    out = {}

    def fp8(name, w):
        q, s = fp8_block(w)
        out[prefix + name + ".weight"], out[prefix + name + ".scale"] = ("F8_E4M3", q), ("F8_E8M0", e8m0(s))

    def fp4(name, w):
        q, s = fp4_group(w)
        out[prefix + name + ".weight"], out[prefix + name + ".scale"] = ("I8", pack_fp4(q).view(torch.int8)), ("F8_E8M0", e8m0(s))
    for k, v in b.p.items():
        k, v = k.replace("/", "."), v.detach().float()
        if k == "ffn.experts.w13":
            for e in range(v.shape[0]):
                gate, up = v[e].chunk(2, 0)
                fp4(f"ffn.experts.{e}.w1", gate)
                fp4(f"ffn.experts.{e}.w3", up)
        elif k == "ffn.experts.w2":
            for e in range(v.shape[0]):
                fp4(f"ffn.experts.{e}.w2", v[e])
        elif k == "ffn.shared_experts.w13":
            gate, up = v.chunk(2, 0)
            fp8("ffn.shared_experts.w1", gate)
            fp8("ffn.shared_experts.w3", up)
        elif k in FP8_NAMES:
            fp8(k[:-len(".weight")], v)
        else:
            out[prefix + k] = ("BF16" if k.endswith(BF16_NAMES) else "F32", v)
    if tid is not None:
        out[prefix + "ffn.gate.tid2eid"] = ("I64", tid.long())
    else:
        out[prefix + "ffn.gate.bias"] = ("F32", b.gate_bias.float())
    return out


def write_safetensors(path, tensors):
    """tensors: name -> (dtype string, tensor).  Returns the data bytes."""
    head, off, blobs = {}, 0, []
    for n, (dt, t) in tensors.items():
        b = raw(dt, t)
        head[n] = {"dtype": dt, "shape": list(t.shape), "data_offsets": [off, off + len(b)]}
        off += len(b)
        blobs.append(b)
    h = json.dumps({"__metadata__": {"format": "pt"}, **head}, separators=(",", ":")).encode()
    h += b" " * (-len(h) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h)
        for b in blobs:
            f.write(b)
    return off


def backbone_shards(model):
    """Shards 1 and 2."""
    half = model.cfg["num_hidden_layers"] // 2
    first = {"embed.weight": ("BF16", model.embed)}
    second = {}
    for i, b in enumerate(model.layers):
        tid = getattr(model, f"tid2eid_{i}") if b.hash else None
        (first if i < half else second).update(block_tensors(f"layers.{i}.", b, tid))
    second.update({"norm.weight": ("BF16", model.norm), "head.weight": ("BF16", model.head)})
    second.update({k: ("F32", getattr(model, k).detach().float()) for k in ("hc_head_fn", "hc_head_base", "hc_head_scale")})
    return [first, second]


def dump(obj, path):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(obj, f, indent=2, ensure_ascii=False)
        f.write("\n")


def export(model, out, stages=None, backbone_of=None):
    """Writes a checkpoint folder.

    stages: DSpark stages (0731 form) instead of the MTP block.  backbone_of: folder name beside `out` whose first two
    shards are linked instead of written again (same backbone).
    """
    os.makedirs(out, exist_ok=True)
    shards = backbone_shards(model)
    if stages is None:
        shards.append(block_tensors("mtp.0.", model.mtp))
    else:
        shards.append({k: v for i, b in enumerate(stages) for k, v in block_tensors(f"mtp.{i}.", b).items()})
    total, where = 0, {}
    for i, s in enumerate(shards):
        name = f"model-{i + 1:05d}-of-{SHARDS:05d}.safetensors"
        path = os.path.join(out, name)
        if os.path.lexists(path):
            os.remove(path)
        total += write_safetensors(path, s)
        if backbone_of and i < 2:
            os.remove(path)
            os.symlink(os.path.join("..", backbone_of, name), path)
        where.update({n: name for n in s})
    dump({"metadata": {"total_size": total}, "weight_map": where}, os.path.join(out, "model.safetensors.index.json"))
    dump(hf_config(model.cfg, stages is not None), os.path.join(out, "config.json"))
    dump(generation_config(), os.path.join(out, "generation_config.json"))
    print("exported", out, len(where), "tensors", total, "bytes", flush=True)


# ---------------------------------------------------------------- reading
_DT = {"BF16": torch.bfloat16, "F32": torch.float32, "I64": torch.int64, "I8": torch.int8, "F8_E8M0": torch.uint8,
       "F8_E4M3": torch.uint8, "I32": torch.int32}


def read_one(path):
    """One file: name -> (dtype string, stored tensor)."""
    with open(path, "rb") as f:
        b = f.read()
    n, out = struct.unpack("<Q", b[:8])[0], {}
    for k, v in json.loads(b[8:8 + n]).items():
        if k != "__metadata__":
            a, z = v["data_offsets"]
            out[k] = (v["dtype"], torch.frombuffer(bytearray(b[8 + n + a:8 + n + z]), dtype=_DT[v["dtype"]]).view(v["shape"]))
    return out


def read_all(path):
    """Every shard of a folder: name -> (dtype string, stored tensor)."""
    out = {}
    for f in sorted(os.listdir(path)):
        if f.endswith(".safetensors"):
            out.update(read_one(os.path.join(path, f)))
    return out


def dequant(stored):
    """Stored tensors -> float32 tensors by weight name (scales consumed; tid2eid stays int64)."""
    out = {}
    for k, (dt, t) in stored.items():
        if dt == "F8_E8M0":
            continue
        if dt in ("I8", "F8_E4M3"):
            s = stored[k[:-len("weight")] + "scale"][1]
            s = torch.ldexp(torch.ones(s.shape), s.int() - 127)
            out[k] = fp4_expand(unpack_fp4(t), s) if dt == "I8" else fp8_expand(e4m3_values(t), s)
        else:
            out[k] = t if dt == "I64" else t.float()
    return out


def fill(block, prefix, take):
    """Copies dequantised tensors into a block; take(name) returns one."""
    for k, p in block.p.items():
        k = prefix + k.replace("/", ".")
        base, leaf = k.rsplit(".", 1)
        if k.endswith("ffn.experts.w13"):
            v = torch.stack([torch.cat((take(f"{base}.{e}.w1.weight"), take(f"{base}.{e}.w3.weight"))) for e in range(p.shape[0])])
        elif k.endswith("ffn.experts.w2"):
            v = torch.stack([take(f"{base}.{e}.{leaf}.weight") for e in range(p.shape[0])])
        elif leaf == "w13":
            v = torch.cat((take(base + ".w1.weight"), take(base + ".w3.weight")))
        else:
            v = take(k)
        p.copy_(v)
    if not block.hash:
        block.gate_bias.copy_(take(prefix + "ffn.gate.bias"))


def load(path, cfg=CFG, stages=None):
    """Checkpoint folder -> Nano with dequantised float32 weights; stages (optional) receive mtp.* instead."""
    t, m, used = dequant(read_all(path)), Nano(cfg), set()

    def take(n):
        used.add(n)
        return t[n]
    with torch.no_grad():
        for n in ("embed", "head", "norm"):
            getattr(m, n).copy_(take(n + ".weight"))
        for n in ("hc_head_fn", "hc_head_base", "hc_head_scale"):
            getattr(m, n).copy_(take(n))
        for i, b in enumerate(m.layers):
            fill(b, f"layers.{i}.", take)
            if b.hash:
                getattr(m, f"tid2eid_{i}").copy_(take(f"layers.{i}.ffn.gate.tid2eid"))
        for i, b in enumerate(stages or [m.mtp]):
            fill(b, f"mtp.{i}.", take)
    if used != set(t):
        raise ValueError(f"tensors without a place: {sorted(set(t) - used)[:5]}")
    return m
