"""The criterion for results of hardware: the CPU's own meet it, and results with fewer digits do not."""

import numpy as np
import pytest

from device_cases import WIDER, elementwise, exact, families, require_digits
from tenferro_runtime import asarray

CASES = [*elementwise(("float32", "complex64")), *families("float32")]


def results(case):
    with np.errstate(all="ignore"):
        found = case.run(*map(asarray, case.operands)), exact(case)
    cpu, wider = (x if isinstance(x, tuple) else (x,) for x in found)
    for x, more in zip(cpu, wider, strict=True):
        if x.dtype.name in WIDER:
            yield np.asarray(x), np.asarray(more)


def test_single_precision_of_the_cpu_meets_it():
    count = 0
    for case in CASES:
        for x, more in results(case):
            require_digits(x, x, more, case.name)
            count += 1
    assert count > 80


@pytest.mark.parametrize("lost", [2, 3, 5])
def test_lost_digits_are_found(lost):
    rng, missed, count = np.random.default_rng(0), [], 0
    for case in CASES:
        for x, more in results(case):
            noise = 1 + 10.0 ** (lost - 7) * rng.choice([-1, 1], x.shape)
            wrong = (x * noise).astype(x.dtype)
            if not x.size or not np.isfinite(x).any() or (wrong == x).all():
                continue
            count += 1
            try:
                require_digits(wrong, x, more, case.name)
                missed.append(case.name)
            except AssertionError:
                pass
    assert count > 60 and len(missed) < count // 10, missed
