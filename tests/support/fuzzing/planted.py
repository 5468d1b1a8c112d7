"""An area whose cases go wrong in known ways: what a campaign must find, reduce and tell apart."""

import ctypes
import os
import random
import time
from collections.abc import Iterator
from typing import Any

from fuzzing.area import Area, Case, Mismatch, halves

KINDS = ("wrong", "error", "crash", "hang", "exit", "remembered")


class Planted(Area):
    """Lists of numbers; one that holds the planted number goes wrong."""

    name = "planted"
    patience = 0.7
    machines = ("without",)

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[int] = set()

    def draw(self, rng: random.Random) -> Case:
        return {"kind": os.environ.get("PLANTED", "wrong"), "numbers": [rng.randrange(100) for _ in range(6)]}

    def run(self, case: Case) -> None:
        kind, numbers = case["kind"], case["numbers"]
        if kind == "remembered":
            self._seen |= set(numbers) & {7}
            if self._seen and 50 in numbers:
                raise Mismatch(f"expected {numbers[0]}, seen what 7 left behind")
        elif 50 in numbers:
            _WAYS[kind](numbers)

    def shrink(self, case: Case) -> Iterator[Case]:
        yield from (case | {"numbers": numbers} for numbers in halves(case["numbers"]))

    def code(self, case: Case) -> str:
        return f"print({case['numbers']})"


def _wrong(numbers: list[int]) -> Any:
    raise Mismatch(f"expected {numbers[0]}, seen {len(numbers)}")


def _error(numbers: list[int]) -> Any:
    raise KeyError(numbers[0])


_WAYS = {
    "wrong": _wrong,
    "error": _error,
    "crash": lambda numbers: ctypes.string_at(0),
    "hang": lambda numbers: time.sleep(1000),
    "exit": lambda numbers: os._exit(3),
}
