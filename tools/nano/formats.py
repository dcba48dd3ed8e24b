"""Number formats of the checkpoint and of the model's activations (E4M3, E2M1, UE8M0), with exact rounding.

Weights: FP8 E4M3 with one power-of-two scale per 128x128 block; FP4 E2M1 with one power-of-two scale per output row
and 32 inputs.  Activations: the dynamic quantisations of the model's native mode, returned dequantised.
"""
import torch


def e4m3_round(x):
    """Nearest E4M3 value (ties to even) of float32 values already inside [-448, 448]."""
    if hasattr(torch, "float8_e4m3fn"):
        return x.to(torch.float8_e4m3fn).to(torch.float32)
    _, e = torch.frexp(x.abs().clamp_min(2.0 ** -9))
    step = torch.ldexp(torch.ones_like(x), (e - 1).clamp_min(-6) - 3)
    return torch.round(x / step) * step


def pow2_up(a):
    """2^ceil(log2 a) for a > 0, computed on the bits."""
    m, e = torch.frexp(a)
    e = torch.where(m == 0.5, e - 1, e)
    return torch.ldexp(torch.ones_like(a), e)


def e2m1_round(x):
    """Nearest of 0, .5, 1, 1.5, 2, 3, 4, 6 with ties to the even code, sign kept."""
    a = x.abs()
    y = 0.5 * ((a > 0.25).float() + (a >= 0.75).float() + (a > 1.25).float() + (a >= 1.75).float())
    y = y + (a > 2.5).float() + (a >= 3.5).float() + 2.0 * (a > 5.0).float()
    return torch.copysign(y, x)


def fp8_block(w):
    """w [out, in], both multiples of 128 -> (E4M3 values [out, in], scales [out/128, in/128])."""
    o, i = w.shape
    b = w.float().view(o // 128, 128, i // 128, 128)
    s = pow2_up(b.abs().amax((1, 3)).clamp_min(1e-4) / 448)
    q = e4m3_round((b / s[:, None, :, None]).clamp(-448, 448))
    return q.view(o, i), s


def fp8_expand(q, s):
    """Inverse of fp8_block, float32."""
    o, i = q.shape
    return (q.float().view(o // 128, 128, i // 128, 128) * s[:, None, :, None]).view(o, i)


def fp4_group(w):
    """w [..., in], in a multiple of 32 -> (E2M1 values [..., in], scales [..., in/32])."""
    b = w.float().unflatten(-1, (-1, 32))
    s = pow2_up(b.abs().amax(-1).clamp_min(6 * 2.0 ** -126) / 6)
    return e2m1_round((b / s[..., None]).clamp(-6, 6)).flatten(-2), s


def fp4_expand(q, s):
    """Inverse of fp4_group, float32."""
    return (q.float().unflatten(-1, (-1, 32)) * s[..., None]).flatten(-2)


def fp8_fake(w):
    """w rounded to what an FP8 checkpoint can hold."""
    return fp8_expand(*fp8_block(w))


def fp4_fake(w):
    """w rounded to what an FP4 checkpoint can hold."""
    return fp4_expand(*fp4_group(w))


def act_sim(x, block):
    """Dynamic E4M3 activation quantisation in blocks of the last dimension, dequantised (model.md 2.0)."""
    b = x.float().unflatten(-1, (-1, block))
    s = pow2_up(b.abs().amax(-1, keepdim=True).clamp_min(1e-4) * (1 / 448))
    return (e4m3_round((b / s).clamp(-448, 448)) * s).flatten(-2).to(x.dtype)


def fp4_sim(x):
    """Dynamic E2M1 activation quantisation in groups of 32, dequantised (indexer queries and keys)."""
    b = x.float().unflatten(-1, (-1, 32))
    s = pow2_up(b.abs().amax(-1, keepdim=True).clamp_min(6 * 2.0 ** -126) * (1 / 6))
    return (e2m1_round((b / s).clamp(-6, 6)) * s).flatten(-2).to(x.dtype)


def hadamard(x):
    """Sylvester-ordered Hadamard transform of the last dimension, scaled by its size^-0.5."""
    d, h, y = x.shape[-1], 1, x.float()
    while h < d:
        y = y.unflatten(-1, (d // (2 * h), 2, h))
        a, b = y[..., 0, :], y[..., 1, :]
        y = torch.stack((a + b, a - b), -2).flatten(-3)
        h *= 2
    return (y * d ** -0.5).to(x.dtype)


def e8m0(s):
    """Power-of-two scales -> UE8M0 bytes."""
    _, e = torch.frexp(s.float())
    return (e - 1 + 127).to(torch.uint8)


_E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
_CODE = torch.tensor([0, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7], dtype=torch.uint8)   # index = 2 * magnitude


def pack_fp4(q):
    """E2M1 values [..., in] -> bytes [..., in/2]; element 2j in the low nibble."""
    code = _CODE.to(q.device)[(q.abs() * 2).long()] | (torch.signbit(q).to(torch.uint8) << 3)
    return code[..., 0::2] | (code[..., 1::2] << 4)


def unpack_fp4(b):
    """Inverse of pack_fp4, float32."""
    u = b.to(torch.int64) & 255
    return torch.stack((_E2M1[u & 15], _E2M1[u >> 4]), -1).flatten(-2)
