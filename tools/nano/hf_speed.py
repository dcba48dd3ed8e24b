"""Decode speed of a checkpoint in transformers on the CPU: greedy, one sequence, with the cache.

Usage: hf_speed.py CHECKPOINT [PROMPT_TOKENS] [NEW_TOKENS].  Prints one line: prompt tokens/s and decode tokens/s.
"""
import sys
import time

import torch

import reference


def main(path, n_prompt=128, n_new=128):
    model, _ = reference.load(path, "cpu")
    ids = torch.randint(3, 4000, (1, n_prompt), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model(ids[:, :16], use_cache=True)      # warm-up
        t0 = time.time()
        out = model(ids, use_cache=True, logits_to_keep=1)
        t1, cache = time.time(), out.past_key_values
        nxt = out.logits[:, -1:].argmax(-1)
        for _ in range(n_new):
            out = model(nxt, past_key_values=cache, use_cache=True)
            nxt = out.logits[:, -1:].argmax(-1)
    print(f"transformers cpu threads {torch.get_num_threads()} prompt {n_prompt / (t1 - t0):.1f} tok/s decode {n_new / (time.time() - t1):.2f} tok/s")


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:]))
