"""What each pass does; that none of them changes a result is shown on random programs."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import REGISTRY, Builder, Literal, check_program, optimise, primitive
from tenferro_runtime.passes import (
    PASSES,
    Rearranging,
    Rounding,
    fold_constants,
    inline_calls,
    prune_outputs,
    remove_dead_code,
    remove_identities,
    reuse_outputs,
    share_common_subexpressions,
    use_literals,
)
from tenferro_tensor import Op, Spec, catalog, tensor
from workspace import ROOT

F8 = np.dtype("float64")
X = Spec((3,), F8)


def names(program: tr.Program) -> list[str]:
    return [eq.op.primitive.name for eq in program.equations]


def test_dead_code_and_its_constants_go() -> None:
    k = tensor([1.0, 2.0, 3.0])

    def f(x):
        tr.exp(x) + k
        return tr.sin(x)

    program = check_program(remove_dead_code(tr.trace(f, X)))
    assert names(program) == ["sin"] and not program.constants


def test_inputs_stay_even_when_they_are_dead() -> None:
    program = remove_dead_code(tr.trace(lambda x, y: y + 1, X, X))
    assert program.inputs == (X, X)


def test_a_program_without_dead_code_is_returned_as_it_is() -> None:
    program = tr.trace(lambda x: tr.sin(x), X)
    assert remove_dead_code(program) is program
    assert share_common_subexpressions(program) is program
    assert fold_constants(program) is program
    assert remove_identities(program) is program
    assert inline_calls(program) is program


@primitive
def minmax(x: Spec) -> tuple[Spec, Spec]:
    """Smallest and largest element."""
    return x.with_(shape=()), x.with_(shape=())


@primitive
def only_max(x: Spec) -> Spec:
    """Largest element."""
    return x.with_(shape=())


REGISTRY.kernel(minmax, "cpu", lambda ins, outs: lambda x: (x.min(), x.max()))
REGISTRY.kernel(only_max, "cpu", lambda ins, outs: lambda x: x.max())


def _max_alone(op: Op, used: tuple[bool, ...]):
    return (only_max.op(), (None, 0)) if used == (False, True) else None


REGISTRY.pruning(minmax, _max_alone)


def test_an_op_of_which_some_outputs_are_used_is_replaced_by_its_pruning() -> None:
    traced = tr.trace(lambda x: minmax(x)[1], X)
    program = check_program(prune_outputs(traced))
    assert names(program) == ["only_max"]
    assert float(program.run(np.asarray([1.0, 5.0, 2.0]))[0]) == 5.0
    kept = check_program(prune_outputs(tr.trace(lambda x: minmax(x)[0], X)))
    assert names(kept) == ["minmax"]
    assert float(kept.run(np.asarray([1.0, 5.0, 2.0]))[0]) == 1.0
    assert remove_dead_code(traced) is traced, "nobody said that this pruning keeps bits"


def test_a_pruning_that_keeps_bits_is_dead_code() -> None:
    REGISTRY.pruning(minmax, _max_alone, keeps_bits=True, replace=True)
    try:
        assert names(remove_dead_code(tr.trace(lambda x: minmax(x)[1], X))) == ["only_max"]
    finally:
        REGISTRY.pruning(minmax, _max_alone, replace=True)


def test_a_call_gives_only_what_is_used() -> None:
    inner = tr.compile(lambda x: (tr.sin(x), tr.cos(x), x * 2))
    program = tr.trace(lambda x: inner(x)[1], X)
    less = check_program(remove_dead_code(program))
    assert [len(eq.results) for eq in program.equations] == [3]
    assert [len(eq.results) for eq in less.equations] == [1]
    assert names(less.equations[0].op.params["program"]) == ["cos"]
    np.testing.assert_array_equal(less.run(np.arange(3.0))[0].data, np.cos(np.arange(3.0)))
    assert remove_dead_code(less) is less


def test_what_defines_a_size_is_alive_while_something_has_the_size() -> None:
    b = Builder()
    x = b.input(Spec((), np.dtype("int64")))
    size = tr.dim("u0", max=9)
    catalog.define_size(x, size=size)
    ones = catalog.broadcast_in_dim(b.constant(tensor(1.0)), shape=(size,), dims=())
    program = b.close([catalog.reduce_sum(ones, axes=(0,)), tr.abs(x)])
    assert remove_dead_code(program) is program
    assert names(remove_dead_code(program.with_(output_ids=program.output_ids[1:]))) == ["abs"]


def test_equal_work_is_done_once() -> None:
    program = share_common_subexpressions(tr.trace(lambda x: tr.sin(x) * 2 + tr.sin(x) * 2, X))
    assert names(check_program(program)) == ["sin", "mul", "add"]


def test_literals_of_different_classes_are_not_equal_work() -> None:
    b = Builder()
    x = b.input(Spec((3,), np.dtype("bool")))
    program = b.close([catalog.eq(x, True), catalog.eq(x, True), catalog.add(x, x)])
    assert names(share_common_subexpressions(program)) == ["eq", "add"]
    y = tr.trace(lambda x: (x * 0.0, x * -0.0), X)
    assert names(share_common_subexpressions(y)) == ["mul", "mul"]


def test_constants_fold_but_small_ones_are_not_blown_up() -> None:
    k = tensor([1.0, 2.0, 3.0])
    scale = tensor(2.0)
    program = tr.trace(lambda x: x * tr.sin(k) + scale, X)
    # A concrete operation is carried out while tracing; what is lifted first is folded by the pass.
    b = Builder()
    x, c = b.input(X), b.constant(k)
    folded = check_program(optimise(b.close([x * catalog.sin(c) * 2.0])))
    assert names(folded) == ["mul", "mul"] and len(folded.constants) == 1
    assert names(fold_constants(program)) == ["mul", "broadcast_in_dim", "add"]
    assert [c.spec.shape for c in fold_constants(program).constants.values()] == [(3,), ()]


def test_arrays_of_one_number_become_the_number() -> None:
    k, half = tensor(np.full(3, 2.0)), tensor(np.float32(0.5))

    def f(x, y):
        return x * k, y + half, tr.where(x > k, x, 1.0)

    program = check_program(use_literals(tr.trace(f, X, Spec((tr.dim("n"),), np.dtype("float32")))))
    less = check_program(remove_dead_code(program))
    assert names(less) == ["mul", "add", "gt", "select"] and not less.constants
    assert [eq.operands[1] for eq in less.equations[:2]] == [Literal(2.0), Literal(0.5)]
    out = less.run(np.arange(3.0), np.ones(4, np.float32))
    assert [v.spec.dtype.name for v in out] == ["float64", "float32", "float64"]
    assert out[1].tolist() == [1.5] * 4 and use_literals(less) is less


def test_numbers_that_would_change_the_dtype_stay_arrays() -> None:
    b = Builder()
    x = b.input(Spec((3,), np.dtype("int64")))
    flags = b.constant(tensor(np.ones(3, bool)))
    wide = catalog.convert(x, dtype=F8)
    kept = b.close([catalog.select(flags, wide, b.constant(tensor(np.full(3, 2.0))))])
    less = check_program(use_literals(kept))
    assert less.equations[-1].operands[0] == flags.id


def test_large_constants_do_not_fold() -> None:
    b = Builder()
    c = b.constant(tensor(np.zeros(10_000)))
    program = b.close([catalog.sin(c)])
    assert fold_constants(program) is program


def test_a_folding_that_fails_is_left_to_fail_when_it_runs() -> None:
    b = Builder()
    two = b.constant(tensor([2]))
    program = b.close([catalog.pow(two, b.constant(tensor([-1])))])
    assert fold_constants(program) is program


@primitive
def failing(x: Spec) -> Spec:
    """Never works."""
    return x


def _fail(x):
    raise RuntimeError("broken kernel")


REGISTRY.kernel(failing, "cpu", lambda ins, outs: _fail)


def test_a_foreign_kernel_that_fails_while_folding_fails_when_it_runs() -> None:
    b = Builder()
    program = optimise(b.close([failing(b.constant(tensor([1.0])))]))
    with pytest.raises(RuntimeError, match="broken kernel"):
        program.run()


def test_identities_go() -> None:
    b = Builder()
    x = b.input(X)
    y = catalog.reshape(catalog.transpose(catalog.convert(x, dtype=F8), permutation=(0,)), shape=(3,))
    z = catalog.broadcast_in_dim(y, shape=(3,), dims=(0,))
    program = check_program(remove_identities(b.close([catalog.sin(z), z])))
    assert names(program) == ["sin"] and program.output_ids[1] == program.input_ids[0]


def test_reshapes_in_a_row_are_one() -> None:
    b = Builder()
    x = b.input(Spec((2, 3), F8))
    wide = catalog.reshape(catalog.reshape(x, shape=(1, 6)), shape=(6,))
    back = catalog.reshape(catalog.reshape(wide, shape=(3, 2)), shape=(2, 3))
    program = check_program(optimise(b.close([wide, catalog.sin(back)])))
    assert names(program) == ["reshape", "sin"]
    assert all(eq.operands == program.input_ids for eq in program.equations)


def test_a_broadcast_that_permutes_is_no_identity() -> None:
    b = Builder()
    x = b.input(Spec((2, 2), F8))
    program = b.close([catalog.broadcast_in_dim(x, shape=(2, 2), dims=(1, 0))])
    assert remove_identities(program) is program
    (y,) = program.run(np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert y.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_calls_are_inlined_at_every_depth() -> None:
    k = tensor([1.0, 2.0, 3.0])
    f = tr.compile(lambda x: x * k)
    g = tr.compile(lambda x: f(x) + f(x))
    program = tr.trace(lambda x: g(x) + k, X)
    flat = check_program(inline_calls(program))
    assert names(program) == ["call", "add"] and names(flat) == ["mul", "add", "add"]
    assert len(flat.constants) == 1
    assert all(eq.source is not None for eq in flat.equations)


def test_the_page_of_passes_has_them_all_in_order() -> None:
    table = [
        line.split("|") for line in (ROOT / "docs" / "passes.md").read_text().splitlines() if line.startswith("| `")
    ]
    listed = [(row[1].strip(" `"), row[3].strip()) for row in table]
    bits: dict[type, str] = {Rounding: "may round", Rearranging: "may move"}
    known = dict.fromkeys((p.__name__, bits.get(type(p), "kept")) for p in PASSES)
    assert listed == list(known)


def test_outputs_of_a_full_op_are_taken_instead_of_a_pruned_one() -> None:
    def f(x, y):
        least = only_max(x)
        other = only_max(y)
        return least * 2.0, minmax(x), other, least

    program = tr.trace(f, X, X)
    less = check_program(reuse_outputs(program))
    assert names(less) == ["minmax", "only_max", "mul"]
    assert less.output_ids[-1] == less.equations[0].results[1]
    arrays = np.asarray([1.0, 5.0, 2.0]), np.asarray([3.0, 4.0, 0.0])
    assert [float(v) for v in less.run(*arrays)] == [float(v) for v in program.run(*arrays)]
    assert [float(v) for v in less.run(*arrays)] == [10.0, 1.0, 5.0, 4.0, 5.0]


def test_a_full_op_on_other_operands_is_not_run_instead() -> None:
    for f in (lambda x, y: (only_max(x), minmax(y)), lambda x, y: (only_max(x), only_max(y)), lambda x, y: minmax(x)):
        program = tr.trace(f, X, X)
        assert reuse_outputs(program) is program
