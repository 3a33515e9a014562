#!/usr/bin/env python3
"""Writes tests/evals/golden/stats.txt: what scipy and statsmodels say to random small designs.

Development time only; needs numpy, scipy and statsmodels. One case a line:
  wilson MET N LOW HIGH
  exact MET N LOW HIGH       (statsmodels' proportion_confint, method "beta")
  mcnemar B C P
  flip P N D1 .. DN          (scipy.stats.permutation_test, paired, exact; for many repeats the
                             whole distribution in integers)
  holm N P1 .. PN A1 .. AN
  tail N K PROB P
  paired LOW HIGH N D1 .. DN (Bonett and Price 2012, from the paired table)
  cochran Q P REPEATS K V..  (statsmodels' cochrans_q; P from all permutations within repeats)
  normal Z P
  two LOW HIGH X N Y M       (statsmodels' confint_proportions_2indep, Newcombe)
  deal P N M X1 .. XN Y1 .. YM (all ways to deal the values into two groups)
  fisher P X N Y M           (scipy's hypergeometric distribution)
  shares LOW HIGH MOST N Y1 .. YN
  area A K DEPTH1 .. RATE1 ..  (numpy's trapezoid)
  samples C N K ALL ANY      (counted over all subsets)
"""
import fractions
import itertools
import math
import pathlib

import numpy
import scipy.stats
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

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
    p12, p21 = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = scipy.stats.norm.ppf(0.975) * numpy.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    values = [0] * a + [1] * b + [-1] * c + [0] * d
    lines.append(
        f"paired {float(max(-1, p12 - p21 - half))!r} {float(min(1, p12 - p21 + half))!r} {n} "
        + " ".join(map(str, values)))
for steps in (2, 3, 6, 12):
    for _ in range(3):
        n = int(random.integers(21, 50))
        d = [int(x) for x in random.integers(-steps, steps + 2, n)]
        d = [min(x, steps) for x in d]
        ways = {0: 1}
        for x in d:
            after = {}
            for total, count in ways.items():
                for sign in (x, -x):
                    after[total + sign] = after.get(total + sign, 0) + count
            ways = after
        hits = sum(count for total, count in ways.items() if abs(total) >= abs(sum(d)))
        p = fractions.Fraction(hits, 2**n)
        lines.append(f"flip {float(p)!r} {n} " + " ".join(repr(x / steps) for x in d))
for repeats, k in [(4, 3), (5, 3), (3, 4), (4, 4), (6, 3)]:
    for binary in (True, False):
        x = random.integers(0, 2 if binary else 4, (repeats, k)) / (1 if binary else 3)
        if (x == x[:, :1]).all():
            continue
        off = x - x.mean(axis=1, keepdims=True)
        q = (k - 1) * ((x.sum(0) - x.sum() / k) ** 2).sum() / (off**2).sum()
        if binary:
            assert abs(q - cochrans_q(x).statistic) < 1e-9
            q = float(cochrans_q(x).statistic)
        orders = [[[row[i] for i in order] for order in itertools.permutations(range(k))] for row in x]
        sums = numpy.zeros((1, k))
        for row in orders:
            sums = (sums[:, None, :] + numpy.array(row)[None]).reshape(-1, k)
        reached = ((sums**2).sum(1) >= (x.sum(0) ** 2).sum() - 1e-9).mean()
        lines.append(f"cochran {float(q)!r} {float(reached)!r} {repeats} {k} "
                     + " ".join(repr(float(v)) for v in x.ravel()))
for z in [0, 0.3, 1, 1.6448536269514722, 1.959963984540054, 2.7, 3.5, 5, 6]:
    lines.append(f"normal {z!r} {float(scipy.stats.norm.sf(z))!r}")
for _ in range(12):
    n, m = (int(x) for x in random.integers(10, 80, 2))
    x, y = int(random.integers(0, n + 1)), int(random.integers(0, m + 1))
    low, high = confint_proportions_2indep(x, n, y, m, method="newcomb")
    lines.append(f"two {float(low)!r} {float(high)!r} {x} {n} {y} {m}")
    total = x + y
    a = numpy.arange(max(0, total - m), min(total, n) + 1)
    far = abs(a / n - (total - a) / m) >= abs(x / n - y / m) - 1e-9
    p = scipy.stats.hypergeom(n + m, total, n).pmf(a)[far].sum()
    lines.append(f"fisher {float(p)!r} {x} {n} {y} {m}")
for _ in range(6):
    n, m = (int(x) for x in random.integers(3, 8, 2))
    v = random.integers(0, 5, n + m) / 4
    gap = abs(v[:n].mean() - v[n:].mean())
    deals = [set(s) for s in itertools.combinations(range(n + m), n)]
    apart = [abs(sum(v[i] for i in s) / n - sum(v[i] for i in range(n + m) if i not in s) / m)
             for s in deals]
    p = sum(x >= gap - 1e-9 for x in apart) / len(deals)
    lines.append(f"deal {p!r} {n} {m} " + " ".join(repr(float(x)) for x in v))
for _ in range(12):
    n, most = int(random.integers(3, 40)), int(random.integers(1, 5))
    y = random.integers(0, most + 1, n) / most
    p = (y.sum() + 1) / (n + 2)
    variance = ((numpy.append(y, [0, 1]) - p) ** 2).sum() / (n + 1)
    worth = n * min(max(p * (1 - p) / variance, 1), most)
    low, high = proportion_confint(y.mean() * worth, worth, method="wilson")
    lines.append(f"shares {float(low)!r} {float(high)!r} {most} {n} "
                 + " ".join(repr(float(x)) for x in y))
for _ in range(5):
    k = int(random.integers(2, 9))
    depths = numpy.sort(random.choice(100001, k, replace=False))
    rates = random.random(k)
    area = numpy.trapezoid(rates, depths) / (depths[-1] - depths[0])
    lines.append(f"area {float(area)!r} {k} " + " ".join(str(int(x)) for x in depths) + " "
                 + " ".join(repr(float(x)) for x in rates))
for _ in range(10):
    n = int(random.integers(1, 9))
    c, k = int(random.integers(0, n + 1)), int(random.integers(1, n + 1))
    subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
    assert len(subsets) == math.comb(n, k)
    lines.append(f"samples {c} {n} {k} {sum(map(all, subsets)) / len(subsets)!r} "
                 f"{sum(map(any, subsets)) / len(subsets)!r}")
for met, n in [(0, 1), (1, 1), (0, 40), (40, 40)] + [
    (int(random.integers(0, n + 1)), int(n)) for n in random.integers(1, 400, 25)
]:
    low, high = proportion_confint(met, n, method="beta")
    low, high = float(low) if met > 0 else 0.0, float(high) if met < n else 1.0
    lines.append(f"exact {met} {n} {low!r} {high!r}")
out = pathlib.Path(__file__).parent.parent / "evals" / "golden" / "stats.txt"
out.parent.mkdir(exist_ok=True)
out.write_text("\n".join(lines) + "\n")
