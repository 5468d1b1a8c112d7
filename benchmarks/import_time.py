"""What importing takes: CPU time of fresh processes, interleaved, with bytecode on disk.

NumPy alone, then what the array namespace adds to NumPy, and what differentiation and each family add to that.
Aims: the namespace adds at most as much as NumPy takes itself, each of the others at most 0.4 of it.
"""

import argparse
import os
import statistics
import subprocess
import sys

ROWS = (
    ("", "numpy", 1.0),
    ("numpy", "tenferro_runtime", 1.0),
    *(("tenferro_runtime", f"tenferro_{name}", 0.4) for name in ("ad", "einsum", "linalg", "fft")),
)
CODE = """
import time
{before}
start = time.process_time()
import {module}
print(time.process_time() - start)
"""


def seconds(before: str, module: str) -> float:
    code = CODE.format(before=before and f"import {before}", module=module)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # starting BLAS's threads is not importing
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    for before, module, _ in ROWS:
        seconds(before, module)  # writes bytecode
    times = [[seconds(before, module) for before, module, _ in ROWS] for _ in range(rounds)]
    medians = [statistics.median(column) for column in zip(*times, strict=True)]
    print(f"{'module':18} {'on top of':18} {'ms':>6} {'of NumPy':>9} {'aim':>5}")
    for (before, module, aim), median in zip(ROWS, medians, strict=True):
        print(f"{module:18} {before or '-':18} {1000 * median:6.1f} {median / medians[0]:9.2f} {aim:5.1f}")


if __name__ == "__main__":
    main()
