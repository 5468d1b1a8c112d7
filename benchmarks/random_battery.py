"""A battery of statistical tests of the words of random streams, of as many bytes as there is time for.

    python3 dev bench random_battery [--bytes 34359738368] [--keys 16]

Words are counted as they come: the numbers of ones of each bit, of 16-bit pieces, of ones in words and in the
exclusive or of neighbours along a stream, of the same positions under neighbouring keys, and runs of bits. Each test is
a chi-square of what was counted against what is expected of independent bits, and gives a p-value; one below 1e-6 or
above 1 - 1e-6 is a failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final

import numpy as np
from rich.progress import track
from scipy import special, stats

import tenferro_runtime as tr

CHUNK: Final = 1 << 20
"""Words at a time."""
FAILURE: Final = 1e-6


class Battery:
    """Counts of what words show."""

    def __init__(self) -> None:
        self.words = 0
        self.pieces = np.zeros((4, 1 << 16), np.int64)
        self.ones = {name: np.zeros(65, np.int64) for name in ("words", "neighbours", "keys", "two apart", "changes")}
        self.bits = np.zeros(64, np.int64)
        self.before: Any = None

    def take(self, words: np.ndarray[Any, Any]) -> None:
        """Words of one stream; calls alternate between the keys."""
        self.words += len(words)
        for k in range(4):
            self.pieces[k] += np.bincount((words >> np.uint64(16 * k)).astype(np.uint16), minlength=1 << 16)
        self._count("words", words)
        self._count("neighbours", words[1::2] ^ words[::2])
        self._count("two apart", words[2::4] ^ words[::4])
        self._count("changes", words ^ (words >> np.uint64(1)))
        if self.before is not None:
            self._count("keys", words ^ self.before)
        self.before = None if self.before is not None else words
        few = words[: len(words) // 16]
        self.bits += np.unpackbits(few.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").sum(0, dtype=np.int64)

    def _count(self, name: str, words: np.ndarray[Any, Any]) -> None:
        self.ones[name] += np.bincount(np.bitwise_count(words), minlength=65)

    def p_values(self) -> dict[str, float]:
        """Of each test."""
        found = {}
        for k, counts in enumerate(self.pieces):
            found[f"16-bit pieces, bits {16 * k}-{16 * k + 15}"] = stats.chisquare(counts).pvalue
        binomial = special.binom(64, np.arange(65)) / 2.0**64
        for name, counts in self.ones.items():
            expected = binomial * counts.sum()
            rare = expected < 10
            kept = [*counts[~rare], counts[rare].sum()], [*expected[~rare], expected[rare].sum()]
            found[f"ones of {name}"] = stats.chisquare(*kept).pvalue
        each = self.words // 16
        z = (self.bits - each / 2) / np.sqrt(each / 4)
        found["each bit"] = stats.chi2(64).sf((z**2).sum())
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--keys", type=int, default=16, help="streams, of neighbouring keys")
    given = parser.parse_args()
    battery, begun = Battery(), time.perf_counter()
    chunks = max(given.bytes // (8 * CHUNK), 2)
    rngs = [tr.random.default_rng(tr.random.key(k)) for k in range(given.keys)]
    for number in track(range(chunks), description="drawing"):
        rng = rngs[number % given.keys]
        battery.take(np.frombuffer(rng.bytes(8 * CHUNK), np.uint64))
    print(f"{battery.words * 8:,} bytes in {time.perf_counter() - begun:.0f} s")
    failed = 0
    for name, p in battery.p_values().items():
        bad = not FAILURE < p < 1 - FAILURE
        failed += bad
        print(f"{name:32} p = {p:.6f}{'  FAILED' if bad else ''}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
