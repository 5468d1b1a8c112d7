"""No table hands out what it made for a value that Python merely holds for equal."""

import ast
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import key_doors
import tenferro_runtime as tr
from key_doors import DOORS, VALUES, WAYS
from tenferro_runtime.extension import caches
from tenferro_tensor import primitives
from tenferro_tensor.tables import TABLES
from tenferro_tensor_core import DIM_MEMO


def _alike(a: Any, b: Any) -> bool:
    """Equal in kind and in bits, but for those of NaN."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a == b
    if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return False
    if a.dtype.kind not in "fc":
        return True
    parts = ((a.real, b.real), (a.imag, b.imag))
    return not any((np.signbit(p) != np.signbit(q))[~np.isnan(p)].any() for p, q in parts)


def test_a_process_that_has_met_equal_values_gives_what_a_fresh_one_gives() -> None:
    """Values of few numbers, of many kinds, through every door, in seven ways, in both orders, and after all others."""
    environment = {**os.environ, "TENFERRO_CPU_JIT": "0", "PYTHONPATH": str(Path(key_doors.__file__).parent)}
    made = subprocess.run([sys.executable, key_doors.__file__], env=environment, capture_output=True, check=True)
    fresh, *warm = pickle.loads(made.stdout)
    numbers = range(len(VALUES))
    assert {*fresh} == {key for key in product(DOORS, WAYS, numbers) if key_doors.asked(*key)}
    wrong = [
        (name, way, VALUES[number], outcome, met)
        for outcomes in warm
        for (name, way, number), [outcome] in fresh.items()
        for met in outcomes[name, way, number]
        if not _alike(outcome, met)
    ]
    assert not wrong, (len(wrong), wrong[:5])
    done = [x for outcomes in fresh.values() for x in outcomes if not isinstance(x, str)]
    assert len(done) > len(fresh) // 2  # most of it is no mistake


def test_the_doors_tell_kinds_apart() -> None:
    """The comparison above can fail: the plug-in of the doors answers each kind of value in its own way."""
    x = tr.ones((3, 3))
    answers = {DOORS["plug-in, object"](x, v).tolist()[0][0] for v in VALUES}
    assert len(answers) == len(VALUES) - 1  # NaN of either sign is one here


OURS = {
    "steps of contractions", "tenferro_einsum: derivatives", "tenferro_einsum: paths",
    "tenferro_runtime: batching rules for specs", "tenferro_runtime: operations on one lane",
    "tenferro_runtime: traced expansions",
}  # fmt: skip
"""Tables with flags of our own, or seconds, in their keys."""


def _raw(key: Any) -> Iterator[Any]:
    """Numbers and slices in a key that stand there without their class."""
    if key.__class__ in (tuple, frozenset):
        tagged = key.__class__ is tuple and key and isinstance(key[0], type)
        for part in () if tagged else key:
            yield from _raw(part)
    elif isinstance(key, (bool, float, complex, slice, np.generic)):
        yield key


def test_keys_of_all_tables_hold_numbers_with_their_classes() -> None:
    """What the doors leave in the tables of the process: an integer is its own key, everything else has its class."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        key_doors.met(range(0, len(VALUES), 3))
    keys = [(cache.owner, key) for cache in caches() for key in list(cache.table)]
    keys += [(table.name, key) for table in TABLES for key in list(getattr(table, "entries", table))]  # type: ignore[arg-type]
    keys += [("sizes", key) for key in list(DIM_MEMO._entries)]
    keys += [(p.name, key) for p in primitives() for key in list(p._alive)]
    wrong = [(owner, key) for owner, key in keys if owner not in OURS and list(_raw(key))]
    assert not wrong, wrong[:5]
    assert len(keys) > 500 and len({owner for owner, _ in keys}) > 40


MEMOISED = {
    "_blas",
    "_coefficients",
    "_empty",
    "_ends",
    "_kept",
    "_lapack",
    "_positional",
    "_routine",
    "_small_mask",
    "_smooth",
    "_spec",
    "_substituted",
    "_to_coefficients",
    "_unitary",
    "_values",
    "_ways",
    "batch_of",
    "coefficients",
    "device",
    "fortran_address",
    "laguerre",
    "lane_of",
    "legendre",
    "user_cache",
    "weights",
}
"""Functions with arguments under `functools.cache`: sizes, dtypes, specs and names of our own."""


def test_what_functools_memoises_takes_no_value_of_a_user() -> None:
    met = set()
    for file in (Path(__file__).parents[2] / "packages").glob("*/src/**/*.py"):
        if {"tenferro_cpu", "tenferro_gpu"} & {*file.parts}:
            continue  # backends see ops and raw arrays
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "cache" in text else ():  # parsing takes long
            if isinstance(node, ast.FunctionDef) and node.args.args:
                decorators = {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list}
                met |= {node.name} if decorators & {"cache", "lru_cache"} else set()
    assert met <= MEMOISED, "functools compares by equality: give the arguments a key_of, or list the function"
