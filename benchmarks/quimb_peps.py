"""Value and gradient of the energy of a PEPS by quimb's optimizer: `python3 dev bench quimb_peps [BACKEND...]`.

Processor time, the median of calls after those during which programs are compiled. PyTorch takes part where it can be
imported.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
import quimb as qu
import quimb.tensor as qtn

import tenferro_runtime  # noqa: F401  # registers its backend with quimb

ROWS = (3, 2), (3, 3)
"""Sides of the lattice and bond dimensions."""
SETTLING = 45.0
"""Seconds that a program is called before its calls are timed."""


def optimizer(backend: str, side: int, bond: int) -> Any:
    state = qtn.PEPS.rand(side, side, bond, seed=1, dtype="float64")
    terms = qtn.LocalHam2D(side, side, H2=qu.ham_heis(2).real).terms

    def energy(state: Any, terms: Any) -> Any:
        return state.compute_local_expectation_exact(terms, normalized=True, optimize="greedy")

    return qtn.TNOptimizer(state, energy, loss_constants={"terms": terms}, autodiff_backend=backend, progbar=False)


def measured(backend: str, side: int, bond: int) -> tuple[float, float, float]:
    """Seconds of the first call, seconds of a later one, and the energy at the start."""
    made = optimizer(backend, side, bond)
    start = time.process_time()
    energy, _ = made.vectorized_value_and_grad(made.vectorizer.vector)
    first = time.process_time() - start
    times: list[float] = []
    begin = time.monotonic()
    while time.monotonic() - begin < SETTLING or len(times) < 5:
        start = time.process_time()
        made.vectorized_value_and_grad(made.vectorizer.vector)
        times.append(time.process_time() - start)
    return first, float(np.median(times[-max(5, len(times) // 10) :])), float(energy)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="*", default=["tenferro", "jax", *["torch"] * bool(find_spec("torch"))])
    print(f"{'':12}{'side':>6}{'bond':>6}{'first s':>10}{'later ms':>12}{'energy':>14}")
    for side, bond in ROWS:
        for backend in parser.parse_args().backends:
            first, later, energy = measured(backend, side, bond)
            print(f"{backend:12}{side:6}{bond:6}{first:10.1f}{later * 1e3:12.2f}{energy:14.8f}", flush=True)


if __name__ == "__main__":
    main()
