"""Compares the program's numbers with the double-precision reference's logits.

  compare_logits.py REFERENCE.npy DUMP.f32          raw float32 logits, [positions, V] row after row
  compare_logits.py REFERENCE.npy SCORES.jsonl      output of `lacuna score-text MODEL --top K`

Prints the mean of KL(reference || program), top-1 agreement and the largest differences. score-text
shows the K best tokens of each position only: KL is then summed over those, and the log probability
of each token that the text really has is compared as well.
"""

import json
import sys

import numpy as np

STEP = 100  # positions at a time


def log_softmax(z):
    z = z.astype(np.float64)
    top = z.max(axis=-1, keepdims=True)
    return z - top - np.log(np.exp(z - top).sum(axis=-1, keepdims=True))


def compare_dump(reference, path):
    dump = np.fromfile(path, np.float32).reshape(-1, reference.shape[1])
    assert dump.shape == reference.shape, (dump.shape, reference.shape)
    kl, agree, nearest = [], 0, 0.0
    for at in range(0, len(dump), STEP):
        theirs, mine = reference[at : at + STEP], dump[at : at + STEP]
        r = log_softmax(theirs)
        kl.append((np.exp(r) * (r - log_softmax(mine))).sum(axis=1))
        agree += (theirs.argmax(axis=1) == mine.argmax(axis=1)).sum()
        nearest = max(nearest, np.abs(theirs.astype(np.float64) - mine).max())
    kl = np.concatenate(kl)
    print("positions                 %d" % len(dump))
    print("mean KL                   %.3e (largest %.3e)" % (kl.mean(), kl.max()))
    print("top-1 agreement           %.2f %%" % (100 * agree / len(dump)))
    print("largest logit difference  %.3e" % nearest)


def compare_scores(reference, path):
    at, kl, agree, worst, scored = 0, 0.0, 0, 0.0, 0
    for line in open(path):
        score = json.loads(line)
        ids = score["ids"]
        # The log probability of each id stands in the one other list of that length.
        text = next(v for k, v in score.items() if k not in ("ids", "top") and isinstance(v, list))
        for i, best in enumerate(score["top"]):
            r = log_softmax(reference[at + i])
            known, mine = np.array([b[0] for b in best]), np.array([b[1] for b in best])
            kl += (np.exp(r[known]) * (r[known] - mine)).sum()
            agree += int(r.argmax() == known[0])
            if i + 1 < len(ids):
                worst = max(worst, abs(r[ids[i + 1]] - text[i + 1]))
                scored += 1
        at += len(ids)
    print("positions                 %d" % at)
    print("KL over the K best        %.3e" % (kl / at))
    print("top-1 agreement           %.2f %%" % (100 * agree / at))
    print("largest log p difference  %.3e (over %d tokens of the text)" % (worst, scored))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reference = np.load(sys.argv[1], mmap_mode="r")
    compare = compare_scores if sys.argv[2].endswith((".json", ".jsonl")) else compare_dump
    compare(reference, sys.argv[2])
