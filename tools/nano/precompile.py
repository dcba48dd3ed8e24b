"""Compiles the later phases' kernels into the shared compiler cache while train.py is busy with the first one."""
import os
import random
from types import SimpleNamespace

import torch

import train

if __name__ == "__main__":
    train.enable_speed()
    trainer = train.Trainer(SimpleNamespace(seed=1, resume="", lr=1e-3, adam_lr=1e-3))
    for phase in train.PHASES[2:]:
        batch = torch.randint(3, 4000, (train.TOKENS // phase.length, phase.length + 2), device="cuda")
        trainer.step(batch, phase, 0.1, random.Random(1))
        torch.cuda.synchronize()
        print("compiled for", phase.length, flush=True)
    os._exit(0)
