"""Five posteriors, sampled by the No-U-Turn sampler, which is one compiled program.

A trajectory of Hamilton's equations is doubled, forward or backward in time, until it turns back; one of its points,
chosen by its weight, is the next state (M. Hoffman, A. Gelman, The No-U-Turn sampler, JMLR 15, 1593 (2014); weights and
criterion after M. Betancourt, A conceptual introduction to Hamiltonian Monte Carlo, arXiv:1701.02434). A tree of
2**depth leapfrog steps is walked leaf by leaf: the momenta that later subtrees are compared with number as many as the
tree has levels, so that the whole sampler is loops over arrays of fixed sizes. Chains are lanes of `vmap`. The step
size follows the rate of acceptance (dual averaging), the masses the variances that the warm-up has seen.

The posteriors, and what is known of them:

- `gaussian`: ten correlated numbers of known covariance;
- `schools`: the effects of coaching in eight schools, not centred (D. Rubin, J. Educ. Stat. 6, 377 (1981); data from
  the paper), whose mean and spread are integrals over two numbers, done here by quadrature;
- `banana`: Rosenbrock's density, whose moments are known;
- `rates`: counts of ten pumps with a gamma prior (conjugate: each posterior is a gamma distribution);
- `regression`: logistic regression on points that the example draws, against sums over a grid.

Run it with `python3 dev run examples/nuts.py --chains 4 --samples 1000 --out posteriors.png`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad

try:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"nuts: the package {missing.name!r} is missing; this example needs matplotlib and rich: run it with "
        "`python3 dev run examples/nuts.py`, which installs them, or `pip install matplotlib rich`"
    ) from missing

DIVERGED: Final = 1000.0
"""Error of the energy at which a trajectory is given up."""

TARGET: Final = 0.8
"""Rate of acceptance that the step size is adapted to."""

Potential = Callable[[Any], Any]
"""The negative logarithm of a density, of a vector."""


# -- the sampler -------------------------------------------------------------------------------------------------------


def turning(inverse_mass: Any, left: Any, right: Any, total: Any) -> Any:
    """Whether the ends of a trajectory approach each other, by their momenta and the sum of all."""
    middle = total - (left + right) / 2.0
    return (tr.sum(inverse_mass * left * middle) <= 0.0) | (tr.sum(inverse_mass * right * middle) <= 0.0)


def trailing_ones(n: Any) -> Any:
    """The number of ones at the end of a binary number."""
    return tr.bitwise_count(n & ~(n + 1))


def subtree(
    force: Any, key: Any, start: Any, step: Any, inverse_mass: Any, energy: Any, depth: Any, levels: int
) -> Any:
    """2**depth leapfrog steps from a point: the last point, the one that was chosen, and what is known of all.

    Args:
        force: gives the potential energy and its gradient.
        key: of the choices.
        start: position, momentum and gradient.
        step: length of a step, negative for one back in time.
        inverse_mass: inverses of the masses.
        energy: energy at the start of the trajectory.
        depth: of the tree.
        levels: the largest depth.

    Returns:
        The end (position, momentum, gradient), the chosen position, its potential and gradient, the logarithm of the
        sum of the weights, the sum of the momenta, the sum of acceptance rates, the number of steps, and whether the
        tree turns or diverges.
    """
    size = start[0].shape[0]
    zeros = tr.zeros((levels, size))

    def unfinished(state: Any) -> Any:
        return (state["leaf"] < (1 << depth)) & ~state["stop"]

    def leaf(state: Any) -> Any:
        n, (q, p, g) = state["leaf"], state["end"]
        p = p - 0.5 * step * g
        q = q + step * inverse_mass * p
        potential, g = force(q)
        p = p - 0.5 * step * g
        error = potential + 0.5 * tr.sum(inverse_mass * p * p) - energy
        error = tr.where(tr.isfinite(error), error, math.inf)
        weight = tr.logaddexp(state["weight"], -error)
        # Chosen in proportion to its weight in what has been seen so far.
        taken = tr.log(1.0 - tr.random.uniform(tr.random.fold_in(key, n))) < -error - weight
        chosen = tr.tree_map(lambda new, old: tr.where(taken, new, old), (q, potential, g), state["chosen"])
        total = state["total"] + p
        # Even leaves begin subtrees: their momenta are kept; odd ones end as many as they have ones at the end.
        place = tr.astype(tr.bitwise_count(n >> 1), tr.int64)
        is_even = (n & 1) == 0
        here = (tr.arange(levels) == place)[:, None] & is_even
        momenta = tr.where(here, p, state["momenta"])
        totals = tr.where(here, total, state["totals"])
        ended = tr.astype(trailing_ones(n), tr.int64)
        turns = tr.vmap(lambda at, before: turning(inverse_mass, at, p, total - before + at))(momenta, totals)
        compared = (tr.arange(levels) <= place) & (tr.arange(levels) > place - ended)
        return {
            "leaf": n + 1, "end": (q, p, g), "chosen": chosen, "weight": weight, "total": total, "momenta": momenta,
            "totals": totals, "accepted": state["accepted"] + tr.exp(tr.minimum(-error, 0.0)),
            "stop": tr.any(turns & compared & ~is_even) | (error > DIVERGED), "diverged": error > DIVERGED,
        }  # fmt: skip

    none = step * 0.0
    first = {
        "leaf": depth * 0, "end": start, "chosen": (start[0], none, start[2]), "weight": none - math.inf,
        "total": start[1] * 0.0, "momenta": zeros, "totals": zeros, "accepted": none, "stop": none > 0.0,
        "diverged": none > 0.0,
    }  # fmt: skip
    return tr.while_loop(unfinished, leaf, first)


def transition(force: Any, key: Any, point: Any, step: Any, inverse_mass: Any, levels: int) -> Any:
    """The next position of a chain, with its potential and gradient.

    Returns:
        The point, the mean rate of acceptance, the number of steps, and whether the trajectory diverged.
    """
    q, potential, g = point
    keys = tr.random.split(key, 2)
    p = tr.random.normal(keys[0], q.shape) / tr.sqrt(inverse_mass)
    energy = potential + 0.5 * tr.sum(inverse_mass * p * p)

    def further(state: Any) -> Any:
        depth = state["depth"]
        words = tr.random.split(tr.random.fold_in(keys[1], depth), 3)
        forward = tr.random.bernoulli(words[0])
        start = tr.tree_map(lambda r, s: tr.where(forward, r, s), state["right"], state["left"])
        new = subtree(force, words[1], start, tr.where(forward, step, -step), inverse_mass, energy, depth, levels)
        right = tr.tree_map(lambda e, r: tr.where(forward, e, r), new["end"], state["right"])
        left = tr.tree_map(lambda e, s: tr.where(forward, s, e), new["end"], state["left"])
        # The new half is preferred: chosen with the ratio of its weight to that of the old one.
        taken = ~new["stop"] & (tr.log(1.0 - tr.random.uniform(words[2])) < new["weight"] - state["weight"])
        total = state["total"] + new["total"]
        return {
            "depth": depth + 1, "left": left, "right": right, "total": total,
            "chosen": tr.tree_map(lambda n, o: tr.where(taken, n, o), new["chosen"], state["chosen"]),
            "weight": tr.logaddexp(state["weight"], new["weight"]), "accepted": state["accepted"] + new["accepted"],
            "steps": state["steps"] + new["leaf"], "diverged": new["diverged"],
            "stop": new["stop"] | turning(inverse_mass, left[1], right[1], total),
        }  # fmt: skip

    none, zero = step * 0.0, tr.asarray(0)
    first = {
        "depth": zero, "left": (q, p, g), "right": (q, p, g), "total": p, "chosen": point, "weight": none,
        "accepted": none, "steps": zero, "diverged": none > 0.0, "stop": none > 0.0,
    }  # fmt: skip
    out = tr.while_loop(lambda s: (s["depth"] < levels) & ~s["stop"], further, first)
    return out["chosen"], out["accepted"] / out["steps"], out["steps"], out["diverged"]


def adapted(state: Any, rate: Any) -> Any:
    """Dual averaging: step sizes that bring the rate of acceptance to its target."""
    count, error, log_step, log_mean, centre = state
    count = count + 1.0
    error = (1.0 - 1.0 / (count + 10.0)) * error + (TARGET - rate) / (count + 10.0)
    log_step = centre - tr.sqrt(count) / 0.05 * error
    share = count**-0.75
    return count, error, log_step, share * log_step + (1.0 - share) * log_mean, centre


@dataclass(frozen=True)
class Chains:
    """Samples [chain, sample, number], the steps of each trajectory, and those that diverged."""

    samples: np.ndarray[Any, Any]
    steps: np.ndarray[Any, Any]
    diverged: np.ndarray[Any, Any]


class Sampler:
    """The No-U-Turn sampler of one density, compiled on first use.

    Args:
        potential: the negative logarithm of the density, up to a constant.
        levels: the largest depth of a tree.
    """

    def __init__(self, potential: Potential, levels: int = 10) -> None:
        self._levels, self._force = levels, value_and_grad(potential)
        self._warm = tr.compile(tr.vmap(self._warmed, (0, 0, 0, None, None)))
        self._draw = tr.compile(tr.vmap(self._drawn, (0, 0, None, None, None)))

    def _warmed(self, key: Any, q: Any, state: Any, inverse_mass: Any, count: Any) -> Any:
        """Steps that adapt the step size; the end, and the mean and the spread of what was seen."""

        def one(i: Any, carry: Any) -> Any:
            point, state, mean, spread = carry
            step = tr.exp(state[2])
            point, rate, _, _ = transition(
                self._force, tr.random.fold_in(key, i), point, step, inverse_mass, self._levels
            )
            moved = point[0] - mean
            mean = mean + moved / (i + 1.0)
            return point, adapted(state, rate), mean, spread + moved * (point[0] - mean)

        first = (q, *self._force(q)), state, q * 0.0, q * 0.0
        point, state, mean, spread = tr.fori_loop(0, count, one, first)
        return point[0], state, mean, spread

    def _drawn(self, key: Any, q: Any, step: Any, inverse_mass: Any, numbers: Any) -> Any:
        """One sample for each of `numbers`."""

        def one(point: Any, i: Any) -> Any:
            new = transition(self._force, tr.random.fold_in(key, i), point, step, inverse_mass, self._levels)
            return new[0], (new[0][0], new[2], new[3])

        return tr.scan(one, (q, *self._force(q)), numbers)[1]

    def run(self, key: Any, start: Any, samples: int, warmup: int = 500) -> Chains:
        """Sample from points [chain, number], after a warm-up in windows of growing length."""
        chains, size = start.shape
        inverse_mass, q = tr.ones(size), tr.asarray(start)
        lengths = [length for length in (warmup // 10, warmup // 5, 3 * warmup // 5, warmup // 10) if length]
        log_step = math.log(0.1)
        for number, length in enumerate(lengths):
            keys = tr.random.split(tr.random.fold_in(key, number), chains)
            lanes = [tr.full((chains,), v) for v in (0.0, 0.0, log_step, log_step, math.log(10.0) + log_step)]
            q, state, mean, spread = self._warm(keys, q, tuple(lanes), inverse_mass, tr.asarray(length))
            log_step = float(tr.mean(state[3]))
            if 0 < number < len(lengths) - 1:
                # Variances of all chains together, drawn towards small ones where little has been seen.
                seen = tr.mean(spread, axis=0) / length + tr.var(mean, axis=0)
                share = length * chains / (length * chains + 5.0)
                inverse_mass = share * seen + (1.0 - share) * 1e-3
        keys = tr.random.split(tr.random.fold_in(key, len(lengths)), chains)
        found, steps, diverged = self._draw(keys, q, tr.asarray(math.exp(log_step)), inverse_mass, tr.arange(samples))
        return Chains(np.asarray(found), np.asarray(steps), np.asarray(diverged))


def effective(x: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Effective number of samples, and the potential scale reduction, of numbers [chain, sample].

    A. Gelman et al., Bayesian data analysis (2013), chapter 11: chains are split in halves, autocorrelations summed in
    pairs as long as these are positive.
    """
    half = x.shape[1] // 2
    x = np.concatenate([x[:, :half], x[:, half : 2 * half]])
    m, n = x.shape
    centred = x - x.mean(1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:, :n].mean(0) / n
    within = covariance[0] * n / (n - 1)
    total = within * (n - 1) / n + x.mean(1).var(ddof=1)
    correlation = 1 - (within - covariance * n / (n - 1)) / total
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(1)
    negative = np.flatnonzero(pairs < 0)
    time = 2 * np.minimum.accumulate(pairs[: negative[0] if negative.size else None]).sum() - 1
    return m * n / max(time, 1 / math.log10(m * n)), math.sqrt(total / within)


# -- the posteriors ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posterior:
    """A density, what its numbers stand for, and what is known of them.

    Attributes:
        potential: the negative logarithm of the density.
        size: how many numbers it has.
        quantities: functions of samples [..., number] by name.
        known: their means and standard deviations.
    """

    potential: Potential
    size: int
    quantities: dict[str, Callable[[Any], Any]]
    known: dict[str, tuple[float, float]]


def gaussian() -> Posterior:
    """Ten numbers, neighbours correlated, of scales from 0.1 to 10."""
    n = 10
    scales = np.geomspace(0.1, 10.0, n)
    covariance = 0.8 ** np.abs(np.subtract.outer(range(n), range(n))) * np.outer(scales, scales)
    precision = tr.asarray(np.linalg.inv(covariance))
    return Posterior(
        lambda x: 0.5 * tr.sum(x * tr.matmul(precision, x)),
        n,
        {"first": lambda x: x[..., 0], "last": lambda x: x[..., -1]},
        {"first": (0.0, 0.1), "last": (0.0, 10.0)},
    )


EFFECTS: Final = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS: Final = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools() -> Posterior:
    """mu ~ N(0, 5), tau ~ half Cauchy(5), effects ~ N(mu, tau), y ~ N(effects, errors); of mu, log tau, and scores."""
    y, errors = tr.asarray(EFFECTS), tr.asarray(ERRORS)

    def potential(x: Any) -> Any:
        mu, log_tau, scores = x[0], x[1], x[2:]
        tau = tr.exp(log_tau)
        residuals = (y - mu - tau * scores) / errors
        prior = 0.5 * (mu / 5.0) ** 2 + tr.log1p((tau / 5.0) ** 2) - log_tau + 0.5 * tr.sum(scores * scores)
        return prior + 0.5 * tr.sum(residuals * residuals)

    # Given tau, mu is normal: one integral is left.
    t = np.linspace(-12.0, 6.0, 20_001)
    tau = np.exp(t)
    variances = ERRORS**2 + tau[:, None] ** 2
    precision = 1 / 25.0 + (1 / variances).sum(1)
    means = (EFFECTS / variances).sum(1) / precision
    log_density = (
        -0.5 * np.log(variances).sum(1) - 0.5 * np.log(precision)
        - 0.5 * ((EFFECTS**2 / variances).sum(1) - precision * means**2) - np.log1p((tau / 5.0) ** 2) + t
    )  # fmt: skip
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mu = float(weights @ means)
    spread = math.sqrt(float(weights @ (1 / precision + means**2)) - mu**2)
    log_tau = float(weights @ t)
    return Posterior(
        potential,
        10,
        {"mu": lambda x: x[..., 0], "log tau": lambda x: x[..., 1]},
        {"mu": (mu, spread), "log tau": (log_tau, math.sqrt(float(weights @ t**2) - log_tau**2))},
    )


def banana() -> Posterior:
    """Rosenbrock's density: x ~ N(1, sqrt(1/2)), y ~ N(x**2, sqrt(1/20))."""
    return Posterior(
        lambda x: (1.0 - x[0]) ** 2 + 10.0 * (x[1] - x[0] * x[0]) ** 2,
        2,
        {"x": lambda x: x[..., 0], "y": lambda x: x[..., 1]},
        {"x": (1.0, math.sqrt(0.5)), "y": (1.5, math.sqrt(2.5 + 0.05))},
    )


def rates() -> Posterior:
    """Failures of ten pumps in some time, Poisson numbers whose rates are Gamma(2, 1) (D. Gaver, I. O'Muircheartaigh,
    Technometrics 29, 1 (1987); data from the paper); of logarithms of the rates."""
    failures = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])
    times = np.array([94.3, 15.7, 62.9, 126.0, 5.24, 31.4, 1.05, 1.05, 2.1, 10.5])
    shapes, inverse_scales = tr.asarray(failures + 2.0), tr.asarray(times + 1.0)
    a, b = failures[6] + 2.0, times[6] + 1.0
    return Posterior(
        lambda x: tr.sum(inverse_scales * tr.exp(x) - shapes * x),
        10,
        {"rate of pump 1": lambda x: np.exp(x[..., 0]), "rate of pump 7": lambda x: np.exp(x[..., 6])},
        {
            "rate of pump 1": (7.0 / 95.3, math.sqrt(7.0) / 95.3),
            "rate of pump 7": (a / b, math.sqrt(a) / b),
        },
    )


def regression() -> Posterior:
    """Logistic regression with an offset and a slope, normal priors, on 40 points that are drawn here."""
    rng = tr.random.default_rng(2026)
    x = rng.normal(0.0, 1.0, 40)
    labels = rng.random(40) < 1.0 / (1.0 + tr.exp(-(0.5 + 1.5 * x)))
    signs = tr.where(labels, 1.0, -1.0)

    def potential(w: Any) -> Any:
        return tr.sum(tr.logaddexp(0.0, -signs * (w[0] + w[1] * x))) + 0.5 * tr.sum(w * w) / 9.0

    # Both numbers on a grid that is wide for the posterior.
    offset, slope = np.meshgrid(np.linspace(-3.0, 4.0, 281), np.linspace(-2.0, 8.0, 401), indexing="ij")
    margins = np.asarray(signs) * (offset[..., None] + slope[..., None] * np.asarray(x))
    log_density = -np.logaddexp(0.0, -margins).sum(-1) - (offset**2 + slope**2) / 18.0
    density = np.exp(log_density - log_density.max())
    density /= density.sum()

    def moments(v: np.ndarray[Any, Any]) -> tuple[float, float]:
        mean = float((density * v).sum())
        return mean, math.sqrt(float((density * v * v).sum()) - mean**2)

    return Posterior(
        potential,
        2,
        {"offset": lambda w: w[..., 0], "slope": lambda w: w[..., 1]},
        {"offset": moments(offset), "slope": moments(slope)},
    )


POSTERIORS: Final[dict[str, Callable[[], Posterior]]] = {
    "gaussian": gaussian, "schools": schools, "banana": banana, "rates": rates, "regression": regression,
}  # fmt: skip


# -- the program -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What was found of a quantity."""

    posterior: str
    quantity: str
    mean: float
    spread: float
    known: tuple[float, float]
    samples: float
    reduction: float

    @property
    def error(self) -> float:
        """Error of the mean, in its standard errors."""
        return (self.mean - self.known[0]) / (self.known[1] / math.sqrt(self.samples))


def rows(name: str, posterior: Posterior, chains: Chains) -> list[Row]:
    """What the samples say of the quantities of a posterior."""
    found = []
    for quantity, f in posterior.quantities.items():
        x = np.asarray(f(chains.samples))
        found.append(Row(name, quantity, x.mean(), x.std(), posterior.known[quantity], *effective(x)))
    return found


def figure(results: dict[str, tuple[Posterior, Chains]]) -> Figure:
    """The first two quantities of each posterior against each other, and the first along the chains."""
    drawing = Figure(figsize=(3 * len(results), 6), layout="constrained")
    axes = drawing.subplots(2, len(results), squeeze=False)
    for column, (name, (posterior, chains)) in enumerate(results.items()):
        (first, f), (second, g) = list(posterior.quantities.items())[:2]
        above, below = axes[0, column], axes[1, column]
        for chain in chains.samples:
            above.plot(f(chain), g(chain), ".", markersize=2, alpha=0.4)
            below.plot(f(chain), linewidth=0.5)
        above.set(title=name, xlabel=first, ylabel=second)
        below.axhline(posterior.known[first][0], color="black", linewidth=1)
        below.set(xlabel="sample", ylabel=first)
    return drawing


def main(arguments: list[str] | None = None) -> int:
    """Sample, and compare with what is known; 1 where a mean is off by more than five standard errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", default=list(POSTERIORS), help=f"of {', '.join(POSTERIORS)}; all by default"
    )
    parser.add_argument("--chains", type=int, default=4, help="number of chains")
    parser.add_argument("--samples", type=int, default=1000, help="samples of each")
    parser.add_argument("--warmup", type=int, default=500, help="steps before")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a figure")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in POSTERIORS]
    if unknown or min(given.chains, given.samples) < 2 or given.warmup < 10:
        parser.error(
            f"no posterior {unknown[0]!r}" if unknown else "it takes two chains, two samples, ten steps before"
        )
    console, results, found = Console(), {}, []
    for name in given.names:
        posterior = POSTERIORS[name]()
        begun = time.perf_counter()
        key = tr.random.key(given.seed)
        start = tr.random.normal(tr.random.fold_in(key, 99), (given.chains, posterior.size))
        with console.status(f"{name}: {given.chains} chains"):
            chains = Sampler(posterior.potential).run(key, start, given.samples, given.warmup)
        results[name] = posterior, chains
        found += rows(name, posterior, chains)
        console.print(
            f"{name}: {time.perf_counter() - begun:.1f} s, {chains.steps.mean():.1f} leapfrog steps a sample, "
            f"{int(chains.diverged.sum())} diverged"
        )
    table = Table("posterior", "quantity", "mean", "known", "deviation", "known", "error", "samples", "R-hat")
    for r in found:
        table.add_row(
            r.posterior, r.quantity, f"{r.mean:.3f}", f"{r.known[0]:.3f}", f"{r.spread:.3f}", f"{r.known[1]:.3f}",
            f"{r.error:+.1f}", f"{r.samples:.0f}", f"{r.reduction:.3f}",
        )  # fmt: skip
    console.print(table)
    if given.out:
        figure(results).savefig(given.out, dpi=120)
    return int(any(abs(r.error) > 5 or not r.reduction < 1.05 for r in found))


if __name__ == "__main__":
    sys.exit(main())
