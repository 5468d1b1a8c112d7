"""Programs of element-wise work, broadcasts and reductions beside JAX and PyTorch, from 100 to 10 000 000 elements.

    python3 dev run benchmarks/fused_programs.py [NAME ...] [--sizes N ...] [--seconds S]

As in `programs.py` the contestants run in turns in one thread each; medians, and ratios above 1 mean that tenferro is
faster. Every program is checked against NumPy first.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from array_programs import CASES
from programs import Bench, peers, program, theirs  # sets the number of threads

import tenferro_runtime as tr


def agree(found: Any, wanted: Any) -> None:
    """Fail where results differ by more than rounding."""
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for x, y in pairs:
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-9, atol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}; all of them by default")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--seconds", type=float, default=0.5, help="time for one line")
    options = parser.parse_args()
    bench = Bench(options.seconds, peers())
    print(f"tenferro, against {', '.join(bench.peers) or 'no other library'}; ratio: their time over ours")
    for name in options.names or CASES:
        case = CASES[name]
        for n in map(int, options.sizes):
            arrays = [bench.rng.standard_normal(shape) for shape in case.shapes(n)]
            args = [tr.asarray(x) for x in arrays]
            ours = program(case.make(tr), *args)
            agree(ours(*args), case.make(np)(*arrays))
            calls = {"tenferro": lambda ours=ours, args=args: ours(*args)}
            bench.row(f"{name}, {n} elements", calls | theirs(bench, case.make, arrays))


if __name__ == "__main__":
    main()
