"""The ground state of the transverse-field Ising chain, by gradient descent on a matrix product state.

The chain of n spins with open ends,

    H = - sum Z[i] Z[i+1] - field * sum X[i],

is gapped on either side of its quantum critical point at field 1, the hardest place for a matrix product state and the
default here. The energy <psi|H|psi> / <psi|psi> is one contraction: H is itself a matrix product, of 3x3 matrices of
2x2 operators,

        | 1  -Z  -field X |
    W = | 0   0         Z |        a path through the matrices picks the terms of H: 0 nothing yet, 1 after a first Z,
        | 0   0         1 |        2 a term is complete,

and one sweep from left to right carries the three environments along; in the end the first is the norm and the last
the energy. Eager automatic differentiation through `einsum` gives the gradient with respect to all tensors, and SciPy's
L-BFGS takes the steps.

The chain is solved exactly by the Jordan-Wigner transformation: free fermions with the coupling matrix
M = field 1 + shift, whose singular values are half of the excitation energies. So the exact energy is -tr|M|
(P. Pfeuty, Ann. Phys. 57, 79 (1970)), and the entropy of the first l spins follows from the singular values of the
leading l x l block of M's orthogonal factor (G. Vidal et al., Phys. Rev. Lett. 90, 227902 (2003)). Below the critical
field the exact ground state superposes the two ordered states, which the optimiser has no reason to do: it settles on
one of them, at an entropy lower by log 2 and an energy higher by an exponentially small amount.

Run it with `python3 dev run examples/ising_ground_state.py --sites 64 --field 1 --bond 12 --out ising.png`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as option  # the chain has a field of its own
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_linalg import qr, svd, svdvals
from tenferro_tensor import Array
from tenferro_tensor_core import ArgumentError

try:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"ising_ground_state: the package {missing.name!r} is missing; this example needs scipy, threadpoolctl, "
        "matplotlib and rich: run it with `python3 dev run examples/ising_ground_state.py`, which installs them, "
        "or `pip install scipy threadpoolctl matplotlib rich`"
    ) from missing

TOLERANCE = 1e-4
"""The relative error of the energy that counts as success."""

State = list[Any]
"""Tensors [left bond, spin, right bond] from left to right."""


@dataclass(frozen=True)
class Options:
    """Which chain, and how to look for its ground state.

    Raises:
        ArgumentError: a value is out of range.
    """

    sites: int = option(default=64, metadata={"help": "number of spins"})
    field: float = option(default=1.0, metadata={"help": "transverse field; 1 is critical"})
    bond: int = option(default=12, metadata={"help": "largest bond dimension"})
    iterations: int = option(default=600, metadata={"help": "most steps of L-BFGS"})
    seed: int = option(default=0, metadata={"help": "seed of the initial state"})
    threads: int = option(default=1, metadata={"help": "BLAS threads; at these sizes one is the fastest"})
    out: Path | None = option(default=None, metadata={"help": "draw a figure: .png, .pdf or .svg"})

    def __post_init__(self) -> None:
        for name, least, most in (
            ("sites", 2, 1024),
            ("bond", 1, 1024),
            ("iterations", 1, 100_000),
            ("seed", 0, 2**32 - 1),
            ("threads", 1, 1024),
        ):
            if not least <= getattr(self, name) <= most:
                raise ArgumentError(f"--{name} is {getattr(self, name)}; give an integer from {least} to {most}")
        if not abs(self.field) <= 1e6:
            raise ArgumentError(f"--field is {self.field}; give a number between -1e6 and 1e6")
        if self.out is not None and self.out.suffix.lower() not in (".png", ".pdf", ".svg"):
            raise ArgumentError(f"--out is {str(self.out)!r}; give a file that ends in .png, .pdf or .svg")


# The energy -----------------------------------------------------------------------------------------------------------


def hamiltonian(field: float) -> Array:
    """The matrix W[w, v, s, t] of operators, of whose product H is an entry."""
    one, x, z = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])
    w = np.zeros((3, 3, 2, 2))
    w[0, 0] = w[2, 2] = one
    w[0, 1], w[1, 2] = -z, z
    w[0, 2] = -field * x
    return tr.asarray(w)  # type: ignore[no-any-return]


def energy_of(operator: Array) -> Callable[[State], Any]:
    """The function that gives the energy of a state."""
    start = tr.asarray([[[1.0], [0.0], [0.0]]])

    def energy(state: State) -> Any:
        environment = start
        for site in state:
            environment = einsum("awb,asc,wvst,btd->cvd", environment, site, operator, site)
        norm, _, value = tr.unstack(tr.reshape(environment, (3,)))
        return value / norm

    return energy


# The search -----------------------------------------------------------------------------------------------------------


def bonds(sites: int, bond: int) -> list[int]:
    """Dimensions of the bonds, the two ends included: no more than the spins on one side can fill."""
    return [min(bond, 2 ** min(i, sites - i)) for i in range(sites + 1)]


def initial_state(options: Options) -> State:
    """A product state, tilted between the field and the coupling, and a little noise."""
    rng = np.random.default_rng(options.seed)
    state = []
    for left, right in pairwise(bonds(options.sites, options.bond)):
        site = 0.1 * rng.normal(size=(left, 2, right))
        site[0, :, 0] += math.cos(0.4), math.sin(0.4)
        state.append(tr.asarray(site))
    return state


def flat(state: State) -> np.ndarray[Any, Any]:
    """All numbers of a state as one vector, as SciPy wants them."""
    return np.concatenate([np.asarray(site).ravel() for site in state])


def unflat(numbers: np.ndarray[Any, Any], like: State) -> State:
    """The state whose numbers these are."""
    parts = np.split(numbers, np.cumsum([site.size for site in like])[:-1])
    return [tr.asarray(part.reshape(site.shape)) for part, site in zip(parts, like)]


def descend(options: Options, exact: float, console: Console) -> tuple[State, list[float]]:
    """Minimise the energy; gives the state and the relative error after each step."""
    start = initial_state(options)
    slope = value_and_grad(energy_of(hamiltonian(options.field)))
    errors: list[float] = []

    def evaluate(numbers: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        energy, gradient = slope(unflat(numbers, start))
        return float(energy), flat(gradient)

    columns = (
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("energy {task.fields[energy]:.8f}  relative error {task.fields[error]:.1e}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=options.iterations, energy=math.nan, error=math.nan)

        def note(intermediate_result: Any) -> None:
            energy = float(intermediate_result.fun)
            errors.append((energy - exact) / abs(exact))
            progress.update(bar, advance=1, energy=energy, error=errors[-1])

        result = minimize(
            evaluate,
            flat(start),
            jac=True,
            method="L-BFGS-B",
            callback=note,
            options={"maxiter": options.iterations, "maxfun": 10**9, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-8},
        )
    return unflat(result.x, start), errors


# The exact solution ---------------------------------------------------------------------------------------------------


def coupling(sites: int, field: float) -> Array:
    """The matrix M by which the chain's free fermions are coupled."""
    return tr.asarray(field * np.eye(sites) + np.eye(sites, k=-1))  # type: ignore[no-any-return]


def exact_energy(sites: int, field: float) -> float:
    """The energy of the ground state, -tr|M|."""
    return -float(tr.sum(svdvals(coupling(sites, field))))


def exact_entropies(sites: int, field: float) -> np.ndarray[Any, Any]:
    """The entropy of the first 1, 2, ... spins of the ground state, in nats."""
    u, _, vh = svd(coupling(sites, field), full_matrices=False)
    correlation = u @ vh
    found = []
    for cut in range(1, sites):
        share = (1 + tr.clip(svdvals(correlation[:cut, :cut]), max=1.0)) / 2  # occupations of the cut's modes
        found.append(-float(tr.sum(xlogx(share) + xlogx(1 - share))))
    return np.array(found)


def entropies(state: State) -> np.ndarray[Any, Any]:
    """The same of a matrix product state: sweep QR decompositions leftward, singular value decompositions rightward."""
    chain = list(state)
    for i in range(len(chain) - 1, 0, -1):
        l, p, r = chain[i].shape
        q, upper = qr(tr.reshape(chain[i], (l, p * r)).mT)
        chain[i] = tr.reshape(q.mT, (-1, p, r))
        chain[i - 1] = einsum("lpr,kr->lpk", chain[i - 1], upper / tr.max(tr.abs(upper)))
    found = []
    for i in range(len(chain) - 1):
        l, p, r = chain[i].shape
        _, s, vh = svd(tr.reshape(chain[i], (l * p, r)), full_matrices=False)
        s = s / tr.sqrt(tr.sum(s * s))
        found.append(-float(tr.sum(xlogx(s * s))))
        chain[i + 1] = einsum("k,kl,lpr->kpr", s, vh, chain[i + 1])
    return np.array(found)


def xlogx(x: Any) -> Any:
    """x log x, and 0 at 0."""
    return x * tr.log(tr.clip(x, min=1e-300))


# The program ----------------------------------------------------------------------------------------------------------


def draw(path: Path, options: Options, errors: Sequence[float], state: State) -> None:
    """The error along the descent, and the entropies against the exact ones."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(np.arange(1, len(errors) + 1), np.maximum(errors, 1e-16), color="tab:blue")
    left.axhline(TOLERANCE, color="black", linestyle=":", linewidth=1)
    left.annotate("accepted", (1, TOLERANCE), (-4, 4), xycoords=("axes fraction", "data"), ha="right",
                  textcoords="offset points")  # fmt: skip
    left.set(title=f"Energy of {options.sites} spins at field {options.field:g}", xlabel="step of L-BFGS")
    left.set(ylabel="relative error")
    cuts = np.arange(1, options.sites)
    exact = "free fermions" if abs(options.field) >= 1 else "free fermions (both orders superposed: + log 2)"
    right.plot(cuts, exact_entropies(options.sites, options.field), color="black", linewidth=1, label=exact)
    right.plot(cuts, entropies(state), ".", color="tab:green", label=f"matrix product state, bond {options.bond}")
    right.set(title="Entanglement", xlabel="bond", ylabel="entropy / nats", ylim=(0, None))
    right.legend(loc="lower center", frameon=False)
    figure.savefig(path, dpi=150)


def options_of(argv: Sequence[str] | None) -> Options:
    """Options from the command line; a bad one ends the program with status 2 and says what to give instead."""
    parser = argparse.ArgumentParser(
        prog="ising_ground_state",
        description="Ground state of the transverse-field Ising chain as a matrix product state.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, item in Options.__dataclass_fields__.items():
        kind = type(item.default) if isinstance(item.default, (int, float)) else Path
        parser.add_argument(f"--{name}", type=kind, default=item.default, help=item.metadata["help"])
    parser.add_argument("--quick", action="store_true", help="at most 12 spins, bond 8 and 200 steps")
    given = vars(parser.parse_args(argv))
    if given.pop("quick"):
        given |= {name: min(given[name], most) for name, most in (("sites", 12), ("bond", 8), ("iterations", 200))}
    try:
        options = Options(**given)
        if options.out is not None:
            require_writable(options.out)
        return options
    except ArgumentError as error:
        parser.error(str(error))


def require_writable(path: Path) -> None:
    """Open the file, in a new folder if need be: better to fail now than after the work.

    Raises:
        ArgumentError: it cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        path.open("ab").close()
    except OSError as cause:
        raise ArgumentError(f"--out is {str(path)!r}, which cannot be written: {cause.strerror}") from cause


def main(argv: Sequence[str] | None = None) -> int:
    """Search, compare and draw; status 1 where the energy is not accurate enough."""
    options = options_of(argv)
    console = Console()
    start = time.perf_counter()
    with threadpool_limits(options.threads):
        exact = exact_energy(options.sites, options.field)
        state, errors = descend(options, exact, console)
        error = (float(energy_of(hamiltonian(options.field))(state)) - exact) / abs(exact)
        if options.out is not None:
            draw(options.out, options, errors, state)
    verdict = "below" if error < TOLERANCE else "NOT below"
    console.print(
        f"relative error {error:.2e} of the exact energy {exact:.10f}, {verdict} {TOLERANCE:g}, "
        f"after {len(errors)} steps and {time.perf_counter() - start:.1f} s"
        + (f"; figure in {options.out}" if options.out is not None else ""),
        soft_wrap=True,
    )
    if not error < TOLERANCE:
        print("ising_ground_state: give a larger --bond or more --iterations", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
