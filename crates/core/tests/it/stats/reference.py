"""Writes reference.json: reference values of SciPy and statsmodels for the tests of `patter_core::stats`.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    /tmp/reference/bin/python crates/core/tests/it/stats/reference.py > crates/core/tests/it/stats/reference.json

The formulas of the Rust code are avoided where a library or a simpler way exists: Tango's interval
comes from maximizing the likelihood, the power of the exact McNemar test from the sum over all tables.
"""

import json
import sys

import numpy as np
import pandas as pd
import scipy
import statsmodels
from scipy import optimize, special, stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

rng = np.random.default_rng(20240607)


def distributions():
    rows = []
    for z in [-37.0, -8.0, -3.0, -1.96, -0.5, 0.0, 0.3, 1.0, 2.5758, 6.0]:
        rows.append(["normal", [z], stats.norm.cdf(z)])
    for p in [1e-300, 1e-20, 1e-6, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.999999]:
        rows.append(["normal_quantile", [p], stats.norm.ppf(p)])
    for a, b, x in [(0.5, 0.5, 0.3), (1, 1, 0.7), (2, 3, 0.1), (50, 0.5, 0.99), (30, 40, 0.4), (500, 700, 0.45), (1e4, 2e4, 0.33)]:
        rows.append(["beta", [a, b, x], special.betainc(a, b, x)])
    for k, n, p in [(0, 5, 0.3), (5, 5, 0.3), (6, 5, 0.3), (8, 10, 0.5), (60, 100, 0.5), (5200, 10000, 0.5), (31, 1000, 0.02), (900, 1000, 0.5)]:
        rows.append(["binomial_at_least", [k, n, p], stats.binom.sf(k - 1, n, p)])
    for t, f in [(-12.7, 1), (-2.0, 3), (0.0, 5), (1.5, 9), (2.0, 30), (3.0, 1000), (-6.0, 40)]:
        rows.append(["student", [t, f], stats.t.cdf(t, f)])
    for p, f in [(0.975, 1), (0.995, 2), (0.9, 4), (0.025, 9), (0.975, 99), (0.5, 7), (0.9999, 12), (0.99, 1999)]:
        rows.append(["student_quantile", [p, f], stats.t.ppf(p, f)])
    for t, f, d in [(2.0, 9, 1.5), (2.0, 9, -1.5), (12.706, 1, 3.0), (4.3, 2, 2.0), (2.03, 35, 2.8), (1.97, 240, 3.3), (1.96, 5000, 2.8)]:
        rows.append(["noncentral_student_above", [t, f, d], stats.nct.sf(t, f, d)])
    return rows


def tango(n, loss, gain, alpha):
    """Inverts the score test by maximizing the likelihood under each difference numerically."""

    def score(delta):
        # p_gain = p_loss + delta, and the rest is one group.
        low, high = max(0.0, -delta), (1.0 - delta) / 2

        def log_likelihood(p_loss):
            rest = 1 - 2 * p_loss - delta
            return special.xlogy(gain, p_loss + delta) + special.xlogy(loss, p_loss) + special.xlogy(n - gain - loss, rest)

        def slope(p_loss):
            rest = 1 - 2 * p_loss - delta
            return gain / (p_loss + delta) + loss / p_loss - 2 * (n - gain - loss) / rest

        edge = 1e-13
        inside = [low + edge, high - edge]
        if slope(inside[0]) <= 0:
            best = low
        elif slope(inside[1]) >= 0:
            best = high
        else:
            best = optimize.brentq(slope, *inside, xtol=1e-16, rtol=1e-15)
        assert log_likelihood(best) >= max(log_likelihood(p) for p in np.linspace(*inside, 50)) - 1e-9
        above = gain - loss - n * delta
        return above and above / np.sqrt(n * (2 * best + delta - delta**2))

    z = stats.norm.ppf(1 - alpha / 2)
    estimate = (gain - loss) / n
    ends = []
    for sign, edge in [(1, -1 + 1e-7), (-1, 1 - 1e-7)]:
        ends.append(optimize.brentq(lambda delta: score(delta) - sign * z, edge, estimate, xtol=1e-14))
    return ends


def proportions():
    rows = []
    for n, loss, gain in [(21, 7, 1), (20, 0, 6), (50, 3, 3), (100, 12, 20), (30, 0, 0), (200, 0, 1), (1000, 40, 75), (44, 1, 0), (5000, 310, 250)]:
        table = [[n - loss - gain, loss], [gain, 0]]
        p = mcnemar(table, exact=True).pvalue
        point = stats.binom.pmf(min(loss, gain), loss + gain, 0.5)
        mid = min(1.0, 2 * stats.binom.cdf(min(loss, gain), loss + gain, 0.5) - point) if loss != gain else 1 - point / 2
        rows.append({"outcomes": [n, loss, gain], "p": p, "mid_p": mid, "score_95": tango(n, loss, gain, 0.05), "score_99": tango(n, loss, gain, 0.01)})
    return rows


def sign_flips():
    rows = []
    total = lambda x, axis: np.sum(x, axis=axis)
    samples = [
        (list(np.round(rng.normal(0.4, 1, 7), 3)), None),
        (list(np.round(rng.lognormal(0, 1, 12) - 0.8, 4)), None),
        ([0.0, 0.0, 1.0, -1.0, 2.0, 2.0, 3.0, 0.0], None),
        (list(rng.integers(-2, 4, 19) / 3), 1 / 3),
        (list(rng.integers(-1, 2, 18).astype(float)), 1.0),
        (list(np.round(rng.normal(0.4, 1, 18), 3)), None),
    ]
    for values, unit in samples:
        found = stats.permutation_test((np.array(values),), total, vectorized=True, permutation_type="samples", n_resamples=np.inf)
        rows.append({"values": values, "unit": unit, "p": found.pvalue})
    return rows


class Replicates:
    def __init__(self, values):
        self.bootstrap_distribution = values


def bootstraps():
    rows = []
    for values in [rng.normal(1, 2, 25), rng.lognormal(0, 1, 40), rng.integers(0, 4, 60).astype(float)]:
        values = np.round(values, 4)
        replicates = np.sort(np.mean(rng.choice(values, (499, len(values))), axis=1))
        fixed = stats.bootstrap((values,), np.mean, n_resamples=0, bootstrap_result=Replicates(replicates), method="BCa", confidence_level=0.9)
        many = stats.bootstrap((values,), np.mean, n_resamples=400_000, batch=10_000, method="BCa", confidence_level=0.95, rng=rng)
        left_out = np.array([np.mean(np.delete(values, i)) for i in range(len(values))])
        off = left_out.mean() - left_out
        rows.append({
            "values": list(values),
            "replicates": list(replicates),
            "acceleration": np.sum(off**3) / (6 * np.sum(off**2) ** 1.5),
            "bca_90": list(fixed.confidence_interval),
            "drawn_95": list(many.confidence_interval),
            "standard_error": float(many.standard_error),
            "student_of_8_95": list(stats.ttest_1samp(values[:8], 0).confidence_interval(0.95)),
        })
    return rows


def careful():
    rows = []
    for n, below, above in [(30, 0, 0), (50, 1, 2), (200, 0, 4), (3, 1, 2)]:
        upper = lambda seen: stats.binomtest(seen, n).proportion_ci(0.95, method="exact").high
        rows.append({"counts": [n, below, above], "interval": [-upper(below), upper(above)]})
    return rows


def holms():
    rows = []
    for ps in [[0.01, 0.04, 0.03, 0.005], [0.5], [0.2, 0.2, 0.9], list(np.round(rng.uniform(size=12) ** 3, 5))]:
        rows.append({"ps": ps, "adjusted": list(multipletests(ps, method="holm")[1])})
    return rows


def spreads():
    rows = []
    for sizes in [[3] * 12, [1, 2, 3, 4, 5, 2, 2], [1] * 9]:
        cases, values = [], []
        for case, size in enumerate(sizes):
            centre = rng.normal(0, 2)
            cases += [case] * size
            values += list(np.round(centre + rng.normal(0, 1, size), 4))
        n, k = len(values), len(sizes)
        if n == k:
            rows.append({"cases": cases, "values": values, "between": np.var(values, ddof=1), "within": None})
            continue
        table = anova_lm(ols("y ~ C(c)", pd.DataFrame({"y": values, "c": cases})).fit())
        among, within = table["mean_sq"]["C(c)"], table["mean_sq"]["Residual"]
        size = (n - sum(s**2 for s in sizes) / n) / (k - 1)
        rows.append({"cases": cases, "values": values, "between": max(0.0, (among - within) / size), "within": within})
    return rows


def rate_power(n, difference, discordance, alpha):
    """Sums over all tables of gains and losses."""
    gain, loss = (discordance + difference) / 2, (discordance - difference) / 2
    total = 0.0
    for gains in range(n + 1):
        losses = np.arange(n - gains + 1)
        p = np.minimum(1, 2 * stats.binom.cdf(np.minimum(gains, losses), gains + losses, 0.5))
        chance = stats.binom.pmf(gains, n, gain) * stats.binom.pmf(losses, n - gains, loss / (1 - gain))
        total += chance[p <= alpha].sum()
    return total


def plans():
    test = TTestPower()
    shifts = []
    for effect, n, alpha in [(0.5, 34, 0.05), (0.2, 10, 0.05), (1.2, 8, 0.01), (0.1, 900, 0.0125), (2.0, 3, 0.05)]:
        shifts.append({"shift": effect, "cases": n, "alpha": alpha, "power": test.power(effect, n, alpha)})
    needed = []
    for effect, alpha, power in [(0.5, 0.05, 0.8), (0.2, 0.05, 0.9), (0.05, 0.01, 0.8), (1.0, 0.05, 0.8)]:
        needed.append({"shift": effect, "alpha": alpha, "power": power, "cases": int(np.ceil(test.solve_power(effect, None, alpha, power)))})
    rates = []
    for n, difference, discordance, alpha in [(50, 0.2, 0.3, 0.05), (200, 0.1, 0.2, 0.05), (120, 0.05, 0.05, 0.05), (400, 0.08, 0.3, 0.0125), (60, 0.0, 0.4, 0.05)]:
        rates.append({"cases": n, "difference": difference, "discordance": discordance, "alpha": alpha, "power": rate_power(n, difference, discordance, alpha)})
    return {"shifts": shifts, "needed": needed, "rates": rates}


def sequences():
    rows = []
    bets = (np.arange(20) + 0.5) / 20
    for kind, values in [
        ("bounded", rng.integers(-1, 2, 60).astype(float)),
        ("bounded", rng.choice([-1.0, 0.0, 1 / 3, 1.0], 80, p=[0.1, 0.4, 0.3, 0.2])),
        ("symmetric", np.round(rng.normal(0.6, 1, 50), 4)),
    ]:

        def capital(side, centre):
            stakes = (values - centre) / (1 + abs(centre))
            if kind == "symmetric":
                for i in range(len(values)):
                    scale = 2 * np.std(values[:i], ddof=1) if i >= 2 else 0
                    off = values[i] - centre
                    stakes[i] = np.clip(off / scale, -1, 1) if scale > 0 else np.sign(off)
            return np.cumprod(1 + side * np.outer(bets, stakes), axis=1).mean(axis=0)

        p = np.minimum.accumulate(np.minimum(1, 2 / np.maximum(capital(1, 0.0), capital(-1, 0.0))))
        edge = 1 if kind == "bounded" else 10
        ends = [optimize.brentq(lambda c: np.log(capital(side, c)[-1] / 20), -edge, edge, xtol=1e-13) for side in (1, -1)]
        rows.append({"assume": kind, "values": list(values), "p": list(p), "interval_90": ends})
    return rows


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


sections = {
    "made_with": {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__, "numpy": np.__version__},
    "distributions": distributions(),
    "proportions": proportions(),
    "sign_flips": sign_flips(),
    "bootstraps": bootstraps(),
    "careful": careful(),
    "holm": holms(),
    "spreads": spreads(),
    "plans": plans(),
    "sequences": sequences(),
}
# One row per line, for readable diffs.
lines = []
for name, section in sections.items():
    rows = section if isinstance(section, list) else None
    body = json.dumps(plain(section)) if rows is None else "[\n" + ",\n".join("    " + json.dumps(plain(row)) for row in rows) + "\n  ]"
    lines.append(f"  {json.dumps(name)}: {body}")
sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
