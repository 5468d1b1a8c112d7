"""Steps traced from a rule give what the rule gives as it is written: both modes, numbers as literals, recording."""

import operator
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, custom_rule, grad, jvp, no_grad, variable
from tenferro_ad import _derivative as derivative
from tenferro_ad._apply import CallSite, apply_jvp, apply_vjp
from tenferro_ad._derivative import PLAIN
from tenferro_ad._jvp import Jvp
from tenferro_ad._record import make_entry
from tenferro_ad._rules import rule_of
from tenferro_ad._vjp import Vjp
from tenferro_runtime.extension import check_program, interpret
from tenferro_tensor import SCALARS, Tensor, catalog, tensor
from tenferro_tensor.calls import Steps

RNG = np.random.default_rng(7)


def array(*shape, dtype="f8"):
    x = RNG.uniform(0.5, 1.5, shape)
    return tensor(np.asarray(x + 0.5j if dtype[0] == "c" else x, dtype))


DOT = {"contract": ((1,), (0,)), "batch": ((), ())}
CASES = {
    "mul": (catalog.mul.op(), [array(3), array(3)]),
    "mul broadcast": (catalog.mul.op(), [array(2, 3), array(3)]),
    "mul stretched": (catalog.mul.op(), [array(2, 1), array(1, 3)]),
    "mul promoted": (catalog.mul.op(), [array(3, dtype="f4"), array(3, dtype="c16")]),
    "mul number": (catalog.mul.op(), [array(3), 2.5]),
    "mul zero": (catalog.mul.op(), [array(3), -0.0]),
    "number mul": (catalog.mul.op(), [2, array(3, dtype="f4")]),
    "div": (catalog.div.op(), [array(3), array(3)]),
    "number div": (catalog.div.op(), [1.0, array(3)]),
    "div number": (catalog.div.op(), [array(3), 4]),
    "pow number": (catalog.pow.op(), [array(3), 3]),
    "number pow": (catalog.pow.op(), [2.0, array(3)]),
    "pow": (catalog.pow.op(), [array(3), array(3)]),
    "add 0-d": (catalog.add.op(), [array(), array()]),
    "add different": (catalog.add.op(), [array(), array(4)]),
    "tanh": (catalog.tanh.op(), [array(3)]),
    "exp complex": (catalog.exp.op(), [array(3, dtype="c16")]),
    "abs complex": (catalog.abs.op(), [array(3, dtype="c16")]),
    "real": (catalog.real.op(), [array(3, dtype="c16")]),
    "maximum": (catalog.maximum.op(), [array(3), array(3)]),
    "relu": (catalog.maximum.op(), [array(3) - 1.0, 0.0]),
    "select": (catalog.select.op(), [tensor([True, False, True]), array(3), array(3)]),
    "sum": (catalog.reduce_sum.op(axes=(0,)), [array(2, 3)]),
    "prod": (catalog.reduce_prod.op(axes=(1,)), [array(2, 3)]),
    "dot": (catalog.dot_general.op(**DOT), [array(2, 3), array(3, 4)]),
    "dot complex": (catalog.dot_general.op(**DOT), [array(2, 3, dtype="c16"), array(3, 4, dtype="c16")]),
    "concatenate": (catalog.concatenate.op(axis=0), [array(2), array(3), array(1)]),
    "sort": (catalog.sort.op(axis=0, descending=False), [array(4)]),
    "gather": (
        catalog.gather.op(offset_dims=(), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1,)),
        [array(4), tensor([[0], [2], [2]])],
    ),
}  # fmt: skip


def site_of(name):
    op, args = CASES[name]
    given = tuple(a.__class__ if a.__class__ in SCALARS else a.spec for a in args)
    need = tuple(i for i, s in enumerate(given) if s not in SCALARS and s.inexact)
    return CallSite(op, rule_of(op), need, given), args


def entry_of(site):
    """The entry of an op, made anew, where recording looks for it."""
    entry = site.op.remember(make_entry(site.op, sum(1 << i for i in site.need), site.given))
    return entry.key, entry


def saved_by(entry, args, out):
    return tuple((*args, out)[i] for i in entry.save)


def host(x):
    return None if x is None else np.asarray(x._concrete())


def same(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g is None) == (w is None)
        if g is not None:
            assert g.spec is w.spec
            np.testing.assert_allclose(host(g), host(w), rtol=1e-13 if g.dtype.itemsize >= 8 else 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_traced_vjp_equals_the_rule(name):
    site, args = site_of(name)
    out = site.op(*args)
    g = array(*out.shape, dtype=out.dtype.str[1:])
    want = apply_vjp(site, list(args), [out], (g,))
    key, first = entry_of(site)
    before = saved_by(first, args, out)  # of a node from before the trace
    for _ in range(2 * derivative.TRACE_USES_AFTER_BACKOFF):
        entry = site.op.entries[key]
        same(entry.vjp(g, saved_by(entry, args, out)), want)
    for _ in range(4):
        same(first.vjp(g, before), want)
    steps = [s for s in first.vjp.steps.values() if isinstance(s, Steps)]
    assert len(steps) == 1, "the rule was not traced"
    if not any(a.__class__ in SCALARS for a in before):
        assert entry.vjp is steps[0], "the entry has the steps themselves"


@pytest.mark.parametrize("name", CASES)
def test_traced_vjp_serves_values_that_are_not_concrete(name):
    site, args = site_of(name)
    out = site.op(*args)
    g = array(*out.shape, dtype=out.dtype.str[1:])
    want = apply_vjp(site, list(args), [out], (g,))
    key, _ = entry_of(site)
    for _ in range(4):
        entry = site.op.entries[key]
        entry.vjp(g, saved_by(entry, args, out))
    entry = site.op.entries[key]
    pulled = entry.vjp(variable(g), saved_by(entry, args, out))
    same([v.detach() if isinstance(v, EagerTensor) else v for v in pulled], want)


@pytest.mark.parametrize("name", CASES)
def test_the_vjp_as_a_program(name):
    site, args = site_of(name)
    if any(a.__class__ in SCALARS for a in args):
        pytest.skip("with numbers as literals")
    vjp = Vjp(site, (1,))
    d = vjp.derive(PLAIN, {})
    check_program(d.program)
    out = site.op(*args)
    g = array(*out.shape, dtype=out.dtype.str[1:])
    values = (*args, out)
    read = range(len(site.save)) if vjp.kept is None else vjp.kept
    inputs = [g, *[values[site.save[k]] for k in read]]
    want = [w for w in apply_vjp(site, list(args), [out], (g,)) if w is not None]
    same(interpret(d.program, inputs), want)
    assert len([o for o in d.outputs if o is not None]) == len(want)


@pytest.mark.parametrize("name", CASES)
def test_traced_jvp_equals_the_rule(name):
    site, args = site_of(name)
    ts = [array(*args[i].shape, dtype=args[i].dtype.str[1:]) for i in site.need]
    outs, want = apply_jvp(site, list(args), ts, None)
    jvp_of_op = Jvp(site, (-2,))
    for _ in range(2 * derivative.TRACE_USES_AFTER_BACKOFF):
        same(jvp_of_op(list(args), list(ts)), [*outs, *want])
    assert any(isinstance(s, Steps) for s in jvp_of_op.steps.values()), "the rule was not traced"


SHORT = ["mul", "mul broadcast", "mul number", "number mul", "div", "pow number", "add 0-d", "dot", "tanh"]


@pytest.mark.parametrize("name", SHORT)
def test_recording_again_equals_recording_first(name):
    op, args = CASES[name]
    vs = [a if a.__class__ in SCALARS else variable(a) for a in args]
    op.forget()
    long = op(*vs)
    f = {"mul": operator.mul, "div": operator.truediv, "pow": operator.pow, "add": operator.add}.get(
        op.primitive.name, op
    )
    for _ in range(3):
        short = f(*vs)
        assert short.spec is long.spec and len(short.node.saved) == len(long.node.saved)
        np.testing.assert_array_equal(host(short), host(long))
        assert short.node.parents == long.node.parents


def test_numbers_are_told_apart():
    x = variable([1.0, 2.0])
    for c in (2, 2.0, True, 0.0, -0.0, float("nan"), 1e300, 3):
        for _ in range(3):
            x.zero_grad()
            (x * c).sum().backward()
            np.testing.assert_array_equal(host(x.grad), np.full(2, float(c)))
            assert np.signbit(host(x.grad)[0]) == np.signbit(float(c))


def test_a_number_as_operand_of_a_structural_op():
    def padded(x):
        return catalog.pad(x, 0.5, low=(1,), high=(0,), interior=(0,)) ** 2

    for _ in range(2 * derivative.TRACE_USES_AFTER_BACKOFF):
        np.testing.assert_array_equal(host(jvp(padded, (np.array([3.0]),), (np.array([1.0]),))[1]), [0.0, 6.0])
        np.testing.assert_array_equal(host(grad(lambda x: padded(x).sum())(np.array([3.0]))), [6.0])


def test_ever_new_numbers_are_not_traced_for_ever():
    x = variable(np.linspace(1.0, 2.0, 17))
    before = Vjp.traces[catalog.mul]
    for k in range(100):
        x.zero_grad()
        (x * (1.5 + k)).sum().backward()
        np.testing.assert_array_equal(host(x.grad), np.full(17, 1.5 + k))
    assert Vjp.traces[catalog.mul] - before <= derivative.LITERAL_TRACES_MAX + 1


def test_changing_shapes_are_not_traced_at_once(monkeypatch):
    monkeypatch.setattr(derivative, "TRACES_BEFORE_BACKOFF", 3)
    for n in range(2, 12):
        x = np.linspace(0.1, 1.0, n)
        for _ in range(4):
            np.testing.assert_allclose(host(grad(lambda v: tr.atan(v).sum())(x)), 1 / (1 + x * x))
            np.testing.assert_allclose(host(jvp(tr.atan, (x,), (x,))[1]), x / (1 + x * x))
    assert Vjp.traces[catalog.atan] <= 3 and Jvp.traces[catalog.atan] <= 3


def test_a_rule_that_cannot_be_traced_is_applied_as_it_is():
    seen = []

    def pull(primals, outs, cotangents):
        seen.append(float(primals[0]))
        return (cotangents[0] * 2.0 * primals[0],)

    square = custom_rule(lambda x: x * x, vjp=pull)
    for _ in range(5):
        assert float(grad(square)(3.0)) == 6
    assert seen == [3.0] * 5


def test_a_general_rule_saves_only_what_it_reads_once_traced():
    def push(primals, tangents, outs):
        (t, u) = tangents
        return ((0 if t is None else 2.0 * t) + (0 if u is None else u),)

    double = custom_rule(lambda x, y: 2.0 * x + y, jvp=push)
    for _ in range(3):
        x, y = variable(1.0), variable(2.0)
        out = double(x, y)
        saved = out.node.saved
        out.backward()
        assert float(x.grad) == 2 and float(y.grad) == 1
    assert saved == ()


def test_threads_trace_the_same_rule_at_once():
    wrong = []

    def work():
        for n in range(30, 40):
            x = np.linspace(0.1, 1.0, n)
            for _ in range(4):
                got = host(grad(lambda v: (tr.sinh(v) * v).sum())(x))
                if not np.allclose(got, np.cosh(x) * x + np.sinh(x)):
                    wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_scopes_agree():
    x = variable([1.0, 2.0])
    for _ in range(3):
        (x * x / 3.0).sum().backward()
    want = host(x.grad) / 3
    x.zero_grad()
    with tr.compute_device("cpu:0"):
        (x * x / 3.0).sum().backward()
    np.testing.assert_allclose(host(x.grad), want)
    with no_grad():
        assert type(x * x / 3.0) is Tensor
