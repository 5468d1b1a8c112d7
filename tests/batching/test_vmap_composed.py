"""`vmap` in any order with every other transform, against calls for one lane after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_ad as ad
import tenferro_runtime as tr
from compositions import BASES, INSIDE, Composition, compositions, looped
from random_programs import Random, random_functions
from thorough import tries

FOUND_WRONG = (
    # Sizes of the program of all lanes: questions about it that the program of one lane had answered.
    Composition("slice", ("switch", "compile", "vmap y", "scan"), (2,), (1, 3, 3, 3)),
    Composition("slice", ("vjp", "checkpoint", "vmap y"), (1,), (1, 2, 3)),
    # A program called like an operation, in the body of a loop.
    Composition("slice", ("switch", "checkpoint", "scan", "vmap last", "stop_gradient"), (2,), (4,) * 5),
    # A rule that comes to an operation with a tuple of one output.
    Composition("einsum", ("vmap last", "vmap last", "vjp", "hessian"), (2,), (3, 3, 2, 2)),
    # Starts that differ between lanes, of a window in an array of an open size.
    Composition("slice", ("jacrev", "jvp", "vmap y", "stop_gradient"), (3,), (4,) * 4),
)


def values(f: Any, xs: Any) -> np.ndarray[Any, Any]:
    return np.asarray(f(*map(tr.asarray, xs)))


def agree(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)


@settings(max_examples=tries(25, 60))
@given(compositions())
def test_random_compositions(made: Composition) -> None:
    xs = made.arguments()
    agree(values(made.function(tr.vmap), xs), values(made.function(looped), xs))


@pytest.mark.parametrize("made", FOUND_WRONG, ids=lambda made: f"{made.base}-{'-'.join(made.transforms)}")
def test_compositions_that_were_wrong(made: Composition) -> None:
    xs = made.arguments()
    wanted = values(made.function(looped), xs)
    agree(values(made.function(tr.vmap), xs), wanted)
    agree(values(tr.compile(made.function(tr.vmap)), xs), wanted)


@pytest.mark.parametrize("transform", [*INSIDE])
@pytest.mark.parametrize("base", ["product", "gather", "solve"])
def test_each_transform_inside_and_outside(transform: str, base: str) -> None:
    for order in ((transform, "vmap"), ("vmap", transform), ("vmap x", transform, "vmap y")):
        made = Composition(base, order, (3,), (2,) * len(order))
        xs = made.arguments()
        agree(values(made.function(tr.vmap), xs), values(made.function(looped), xs))


@pytest.mark.parametrize("transforms", [("grad", "vmap"), ("scan", "vmap last"), ("cond", "vmap"), ("vmap x", "grad"),
                                        ("hessian", "vmap"), ("while_loop", "vmap y"), ("checkpoint", "vmap", "grad"),
                                        ("compile", "vmap", "jvp")], ids="-".join)  # fmt: skip
@pytest.mark.parametrize("base", ["product", "gather", "scatter", "slice", "solve", "einsum", "bent"])
def test_one_program_serves_all_numbers_of_lanes(base: str, transforms: tuple[str, ...], tmp_path: Path) -> None:
    def both(made: Composition) -> np.ndarray[Any, Any]:
        return np.stack(made.arguments())

    first, *others = (Composition(base, transforms, (3,), (lanes,) * len(transforms)) for lanes in (4, 2, 7))
    mapped = first.function(tr.vmap)
    f = tr.compile(lambda xy: mapped(xy[0], xy[1]))
    agree(np.asarray(f(both(first))), values(first.function(looped), first.arguments()))
    f.save(tmp_path / "lanes.tfp", both(first))
    loaded = tr.load(tmp_path / "lanes.tfp")
    for made in others:
        wanted = values(made.function(looped), made.arguments())
        agree(np.asarray(f(both(made))), wanted)
        agree(np.asarray(loaded(both(made))), wanted)
    assert f.cache_info().traces == 1


@settings(max_examples=tries(25, 60))
@given(random_functions())
def test_random_functions_of_primitives(f: Random) -> None:
    batches = [tr.stack([x, x[::-1] if x.ndim else -x if x.dtype.kind in "fc" else x, x]) for x in f.inputs]
    rows = [f(*[b[k] for b in batches]) for k in range(3)]
    wanted = [np.stack([np.asarray(row[i]) for row in rows]) for i in range(len(rows[0]))]
    for mapped in (tr.vmap(f), tr.compile(tr.vmap(f)), tr.vmap(tr.compile(f))):
        with np.errstate(all="ignore"):
            found = mapped(*batches)
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(np.asarray(x), y, rtol=1e-5, atol=1e-7)


def test_linearized_and_transposed_functions_have_lanes() -> None:
    x, t = np.arange(6.0).reshape(2, 3) + 0.5, np.ones((2, 3))
    mapped = tr.vmap(lambda x: tr.sum(x * x) * x)
    out, push = ad.linearize(mapped, x)
    _, tangent = ad.jvp(mapped, (x,), (t,))
    agree(np.asarray(push(t)), np.asarray(tangent))
    (pulled,) = ad.linear_transpose(push, x)(out)
    agree(np.asarray(pulled), np.asarray(ad.vjp(mapped, x)[1](out)[0]))


def test_maps_of_a_linearized_function_share_what_it_knows() -> None:
    x = np.arange(3.0) + 0.5
    _, push = ad.linearize(lambda x: tr.sin(x) * tr.sum(x), x)
    columns = tr.vmap(push)(np.eye(3))
    agree(np.asarray(columns).T, np.asarray(ad.jacfwd(lambda x: tr.sin(x) * tr.sum(x))(x)))


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (-1, 0)], ids=str)
def test_no_lanes(axes: Any) -> None:
    xs = [tr.zeros(3 if axis is None else (0, 3) if axis == 0 else (3, 0)) for axis in axes]
    for f in BASES.values():
        assert tr.vmap(f, axes)(*xs).shape == (0, 3)
