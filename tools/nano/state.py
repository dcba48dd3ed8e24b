"""Training state between pieces: the weights in bfloat16, in parts below 16 MiB."""
import os

import torch

PART = 15 << 20


def save(model, folder):
    """Writes part-0.pt, part-1.pt, ..."""
    os.makedirs(folder, exist_ok=True)
    part, size, n = {}, 0, 0
    for k, v in list(model.state_dict().items()) + [(None, None)]:
        if k is None or size + v.numel() * 2 > PART:
            torch.save(part, os.path.join(folder, f"part-{n}.pt"))
            part, size, n = {}, 0, n + 1
        if k is not None and "tid2eid" not in k:
            part[k] = v.detach().bfloat16().cpu()
            size += v.numel() * 2


def restore(model, folder):
    """Reads them back; the hash tables follow from their seeds."""
    full = {k: v for k, v in model.state_dict().items() if "tid2eid" in k}
    for f in sorted(os.listdir(folder)):
        if f.startswith("part-"):
            full.update({k: v.float() for k, v in torch.load(os.path.join(folder, f)).items()})
    model.load_state_dict(full)
