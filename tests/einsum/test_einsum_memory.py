"""Memory of contractions and of their gradients: predicted as it is measured, on public and named networks."""

import json
import tracemalloc

import numpy as np
import pytest

import tenferro_runtime as tr
from runtime_rooms import COMPILING
from tenferro_ad import vjp
from tenferro_cpu.native import available
from tenferro_einsum import MemoryBudgetError, plan
from thorough import THOROUGH
from workspace import ROOT

pytestmark = pytest.mark.skipif(not available(), reason="NumPy's products copy operands, which nobody predicts")


def allocated(run):
    """Bytes that a call has allocated at most at once, by Python's own count."""
    for _ in range(3):  # what is prepared on first uses is kept
        run()
    COMPILING.drain()  # threads that compile allocate, too
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        keep = run()
        return tracemalloc.get_traced_memory()[1] - before + 0 * len(keep)
    finally:
        tracemalloc.stop()


def draw(shapes, dtype="float64"):
    rng = np.random.default_rng(0)
    found = []
    for shape in shapes:
        x = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.standard_normal(shape)
        found.append(tr.asarray((x / max(1, x.size) ** 0.25).astype(dtype)))
    return found


def require_predicted(prepared, xs, *, backward=True):
    """The forward call, and the call with the gradients of all operands, take what the plan says."""
    out = prepared(*xs)
    assert allocated(lambda: [prepared(*xs)]) == pytest.approx(prepared.peak_bytes, rel=0.1)
    if backward:
        seed = tr.ones(out.shape, dtype=out.dtype)

        def run():
            value, pull = vjp(prepared, *xs)
            return value, pull(seed)

        assert allocated(run) == pytest.approx(prepared.backward_peak_bytes, rel=0.1)


def instance(name, strategy):
    read = json.loads((ROOT / "data" / "einsum" / f"{name}.json").read_text())
    equation = read.get("format_string_rowmajor") or read["format_string"]
    return equation, [tuple(s) for s in read["shapes"]], [tuple(p) for p in read["paths"][strategy]["path"]]


LIGHT = [
    "bin_batched_matmul_b32_m64_n64_k64", "bin_batched_outer_product_compact_j16_k16_o64_t64", "bin_matmul_256",
    "lm_batch_likelihood_sentence_4_4d", "str_matrix_chain_multiplication_100",
]  # fmt: skip
HEAVY = ["bin_elementwise_mul_2048x2048", "str_mps_varying_inner_product_200"]
LARGE = [
    "bin_batched_matmul_b32_m128_n128_k128", "bin_matmul_1024", "bin_outer_product_4096",
    "lm_batch_likelihood_sentence_3_12d",
]  # fmt: skip
"""Of the kinds of `LIGHT`, with more elements."""
if THOROUGH:
    HEAVY += LARGE
BUDGETS = [
    ("lm_batch_likelihood_sentence_4_4d", 0.3, 0.1), ("nary_matmul_chain_64", 0.6, 0.7),
]  # fmt: skip
"""Parts of the memory of the whole contraction, and of the whole gradient, that are allowed.

Each thread packs blocks of its own, so the whole takes less on fewer cores: the parts are small enough for one.
"""


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        *[(name, "opt_size") for name in LIGHT],
        *[pytest.param(name, "opt_size", marks=pytest.mark.slow) for name in HEAVY],
        *[
            pytest.param(name, "opt_flops", marks=pytest.mark.slow)
            for name in (*LIGHT, *HEAVY)
            if not name.startswith("bin_")  # two operands have one path
        ],
    ],
)
def test_public_instances(name, strategy):
    equation, shapes, path = instance(name, strategy)
    require_predicted(plan(equation, *[tr.Spec(s, tr.float64) for s in shapes], optimize=path), draw(shapes))


@pytest.mark.parametrize(("name", "part", "backward_part"), BUDGETS)
def test_public_instances_in_slices(name, part, backward_part):
    equation, shapes, path = instance(name, "opt_size")
    xs = draw(shapes)
    whole = plan(equation, *xs, optimize=path)
    for budget, backward in ((part * whole.peak_bytes, False), (backward_part * whole.backward_peak_bytes, True)):
        cut = plan(equation, *xs, optimize=path, memory_budget=int(budget))
        assert (cut.backward_slicing if backward else cut.slicing).count > 1
        require_predicted(cut, xs, backward=backward)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_the_inner_product_of_matrix_product_states(dtype):
    count, bond = 30, 32
    terms = [[(side, i), i, (side, i + 1)] for side in "ab" for i in range(count)]
    shapes = [(1 if i == 0 else bond, 2, 1 if i == count - 1 else bond) for i in range(count)] * 2
    xs = draw(shapes, dtype)
    require_predicted(plan(*[v for pair in zip(xs, terms, strict=True) for v in pair], []), xs)


@pytest.mark.parametrize("budget", [None, 0.3])
def test_rows_of_projected_entangled_pairs(budget):
    """Two rows of four sites, of bond 12, contracted to a boundary of four open legs."""
    width, bond = 4, 12
    terms, shapes = [], []
    for row in range(2):
        for i in range(width):
            sides = [("h", row, i), ("h", row, i + 1)]
            labels = [x for x, there in zip(sides, (i > 0, i < width - 1), strict=True) if there]
            labels += [("v", 0, i)] if row == 0 else [("v", 0, i), ("v", 1, i)]
            terms.append(labels)
            shapes.append((bond,) * len(labels))
    xs = draw(shapes)
    args = [*[v for pair in zip(xs, terms, strict=True) for v in pair], [("v", 1, i) for i in range(width)]]
    whole = plan(*args)
    if budget is None:
        require_predicted(whole, xs)
        return
    cut = plan(*args, memory_budget=int(budget * whole.peak_bytes))
    assert cut.slicing.count > 1
    require_predicted(cut, xs, backward=False)
    assert np.allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)))


def test_a_hopeless_number_of_slices_is_refused():
    """Every bond of a chain would have to be cut by itself: the numbers of parts multiply."""
    terms = [[i, i + 1] for i in range(60)]
    specs = [tr.Spec((40, 40), tr.float64) for _ in terms]
    args = [*[v for pair in zip(specs, terms, strict=True) for v in pair], [0]]
    whole = plan(*args, optimize=False)
    with pytest.raises(MemoryBudgetError, match=r"in up to 1048576 slices, with its results, it takes \d+ bytes"):
        plan(*args, optimize=False, memory_budget=whole.peak_bytes // 40)


NETWORKS = [
    ("abi,bcj,cak->ijk", [(60, 60, 8)] * 3),
    ("aib,bjc,ckd,dla->ijkl", [(80, 8, 80)] * 4),
    ("ab,bc,cd,de->ae", [(300, 300)] * 4),
    ("ia,ib,ic->abc", [(500, 60), (500, 50), (500, 40)]),
]


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int64"])
@pytest.mark.parametrize(("subscripts", "shapes"), NETWORKS)
def test_networks_of_several_kinds(subscripts, shapes, dtype):
    """With the engine, and op by op for integers."""
    xs = [x.astype(dtype) for x in draw(shapes, "float64" if dtype == "int64" else dtype)]
    whole = plan(subscripts, *xs)
    assert whole.report.peak == whole.peak_bytes
    require_predicted(whole, xs, backward=dtype != "int64")
    if dtype != "int64" and whole.peak_bytes > 2 * np.asarray(whole(*xs)).nbytes:
        require_predicted(plan(subscripts, *xs, memory_budget=whole.peak_bytes // 2), xs, backward=False)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize(("subscripts", "shapes"), NETWORKS)
def test_gradients_within_a_budget(subscripts, shapes, dtype):
    xs = draw(shapes, dtype)
    whole = plan(subscripts, *xs, memory_budget=10**9)
    require_predicted(whole, xs)
    cut = plan(subscripts, *xs, memory_budget=int(0.8 * whole.backward_peak_bytes))
    assert cut.backward_slicing.count > 1
    require_predicted(cut, xs)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_reports_tell_the_memory_of_the_kernels_that_run(dtype):
    """Two operands, by products of the core and in slices."""
    for subscripts, shapes, budget in (
        ("ij,jk->ik", [(300, 300)] * 2, None), ("bij,bjk->bki", [(8, 60, 60)] * 2, None),
        ("ij,jk->ik", [(400, 100), (100, 400)], 10**7), ("abi,bcj,cak->ijk", [(60, 60, 8)] * 3, 300_000),
    ):  # fmt: skip
        prepared = plan(subscripts, *draw(shapes, dtype), memory_budget=budget)
        assert prepared.report.peak == prepared.peak_bytes


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_values_that_are_made_once_for_all_slices(dtype):
    """They are held while slices are done, and in a gradient their cotangents are, too."""
    xs = draw([(90, 90, 24), (90, 90, 24), *[(90, 90)] * 4], dtype)
    args = ("abi,bcj,cd,de,ef,fa->ij", *xs)
    path = [(2, 3), (2, 4), (2, 3), (0, 2), (0, 1)]
    whole = plan(*args, optimize=path, memory_budget=10**9)
    cut = plan(*args, optimize=path, memory_budget=whole.peak_bytes // 3)
    assert cut.slicing.once
    require_predicted(cut, xs, backward=False)
    cut = plan(*args, optimize=path, memory_budget=int(0.7 * whole.backward_peak_bytes))
    assert cut.backward_slicing.once
    require_predicted(cut, xs)
