#!/usr/bin/env python3
"""Writes tests/evals/golden/stats.txt: what scipy and statsmodels say to random small designs.

Development time only; needs numpy, scipy and statsmodels. One case a line:
  wilson MET N LOW HIGH
  mcnemar B C P
  flip P N D1 .. DN          (scipy.stats.permutation_test, paired, exact)
  holm N P1 .. PN A1 .. AN
  tail N K PROB P
  paired LOW HIGH N D1 .. DN (Agresti and Min 2005, from the paired table)
"""
import pathlib

import numpy
import scipy.stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

random = numpy.random.default_rng(4117)
lines = []
for met, n in [(1, 1), (10, 10), (27, 30), (90, 100), (450, 500)] + [
    (int(random.integers(0, n + 1)), int(n)) for n in random.integers(1, 400, 25)
]:
    low, high = proportion_confint(met, n, method="wilson")
    lines.append(f"wilson {met} {n} {low!r} {high!r}")
for b, c in random.integers(0, 40, (25, 2)).tolist() + [[0, 5], [0, 6], [6, 0], [0, 700], [320, 380]]:
    p = mcnemar([[0, b], [c, 0]], exact=True).pvalue if b + c else 1.0
    lines.append(f"mcnemar {b} {c} {float(p)!r}")
for _ in range(20):
    n = int(random.integers(2, 13))
    d = random.integers(-4, 5, n) / 4
    if not d.any():
        continue
    test = scipy.stats.permutation_test(
        (d, numpy.zeros(n)), lambda x, y, axis: (x - y).sum(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=numpy.inf)
    # scipy doubles the smaller tail; for a symmetric distribution that is P(|S| >= |s|)
    lines.append(f"flip {float(test.pvalue)!r} {n} " + " ".join(repr(float(x)) for x in d))
for _ in range(10):
    n = int(random.integers(1, 9))
    p = random.random(n) ** 3
    adjusted = multipletests(p, method="holm")[1]
    lines.append(f"holm {n} " + " ".join(repr(float(x)) for x in [*p, *adjusted]))
for _ in range(15):
    n = int(random.integers(1, 200))
    k = int(random.integers(0, n + 1))
    prob = float(random.random())
    lines.append(f"tail {n} {k} {prob!r} {float(scipy.stats.binom.sf(k - 1, n, prob))!r}")
for _ in range(15):
    a, b, c, d = random.integers(0, 15, 4).tolist()
    n = a + b + c + d
    if n == 0:
        continue
    cells = numpy.array([a, b, c, d]) + 0.5
    p12, p21, total = cells[1] / cells.sum(), cells[2] / cells.sum(), cells.sum()
    half = scipy.stats.norm.ppf(0.975) * numpy.sqrt((p12 + p21 - (p12 - p21) ** 2) / total)
    values = [0] * a + [1] * b + [-1] * c + [0] * d
    lines.append(
        f"paired {float(max(-1, p12 - p21 - half))!r} {float(min(1, p12 - p21 + half))!r} {n} "
        + " ".join(map(str, values)))
out = pathlib.Path(__file__).parent.parent / "evals" / "golden" / "stats.txt"
out.parent.mkdir(exist_ok=True)
out.write_text("\n".join(lines) + "\n")
