"""Writes a random but healthy checkpoint, for bringing an engine up.  Usage: random_checkpoint.py OUT TOKENIZER_DIR"""
import os
import shutil
import sys

import torch

import checkpoint
from model import Nano

if __name__ == "__main__":
    torch.manual_seed(20)
    checkpoint.export(checkpoint.randomise(Nano(), 20), sys.argv[1])
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(sys.argv[2], name), sys.argv[1])
