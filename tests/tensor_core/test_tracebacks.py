"""Errors show the lines of users: frames of the library are hidden, and those of other code stay."""

import gc
import logging
import pickle
import subprocess
import sys
import traceback
import weakref
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_tensor_core import AxisError, ShapeError
from tenferro_tensor_core.tracebacks import OURS, KeywordError, boundary, hide_frames, hiding
from workspace import ROOT

X, Y, A = tr.asarray([1.0, 2.0, 3.0]), tr.ones(2), tr.ones((2, 2))


def own_zero_division(x):
    return x / 0 if isinstance(x, int) else own_zero_division(1)


def misfit(v):
    return v + Y


def singular(a):
    return tr.linalg.inv(a) + 1.0


INVERSE = tr.compile(singular)


def assigned():
    z = tr.zeros(3)
    z[0] = tr.ones(4)


CLEAN = {
    "operator": lambda: X + Y,
    "matrix product": lambda: X @ A,
    "index": lambda: X[5],
    "assignment": assigned,
    "ufunc of NumPy": lambda: np.add(X, Y),
    "function of NumPy": lambda: np.sum(X, axis=4),
    "reshape": lambda: tr.reshape(X, (2, 2)),
    "concat": lambda: tr.concat([X, A]),
    "einsum": lambda: tr.einsum("i,i->", X, Y),
    "notation of einsum": lambda: tr.einsum("ij,jk->ik", X, Y),
    "contract_path": lambda: tr.einsum.__globals__["contract_path"]("ij->", X),
    "solve": lambda: tr.linalg.solve(A, Y),
    "svd": lambda: tr.linalg.svd(X),
    "fft": lambda: tr.fft.fft(X, axis=4),
    "random": lambda: tr.random.normal((3,)),
    "keyword": lambda: tr.linalg.svd_trunc(A, chi=1),  # type: ignore[call-arg]
    "gradient": lambda: ad.grad(misfit)(X),
    "gradient of a vector": lambda: ad.grad(lambda v: v)(X),
    "gradient of user code": lambda: ad.grad(own_zero_division)(X),
    "value_and_grad": lambda: ad.value_and_grad(own_zero_division)(X),
    "vjp": lambda: ad.vjp(misfit, X),
    "pullback": lambda: ad.vjp(lambda v: 2 * v, X)[1](Y),
    "jvp": lambda: ad.jvp(misfit, (X,), (X,)),
    "jacfwd": lambda: ad.jacfwd(misfit)(X),
    "jacrev": lambda: ad.jacrev(misfit)(X),
    "hessian": lambda: ad.hessian(misfit)(X),
    "linearize": lambda: ad.linearize(misfit, X),
    "backward": lambda: ad.variable(X).backward(),
    "compile": lambda: tr.compile(misfit)(X),
    "compile user code": lambda: tr.compile(own_zero_division)(X),
    "compile with keywords": lambda: tr.compile(own_zero_division)(x=X),
    "number of a traced value": lambda: tr.compile(lambda v: float(v[0]))(X),
    "gradient of a compiled function": lambda: ad.grad(tr.compile(misfit))(X),
    "compiled gradient": lambda: tr.compile(ad.grad(misfit))(X),
    "trace": lambda: tr.trace(misfit, X),
    "program": lambda: tr.trace(singular, A)(A),
    "program, run": lambda: tr.trace(singular, A).run(A),
    "explain": lambda: tr.compile(misfit).explain(X),
    "vmap": lambda: tr.vmap(misfit)(tr.ones((4, 3))),
    "scan": lambda: tr.scan(lambda c, v: (c + Y, v), X, X),
    "while_loop": lambda: tr.while_loop(lambda c: True, misfit, X),
    "fori_loop": lambda: tr.fori_loop(0, 3, lambda i, c: c + Y, X),
    "cond": lambda: tr.cond(True, misfit, misfit, X),
    "switch": lambda: tr.switch(0, [misfit], X),
    "map": lambda: tr.map(lambda v: v + X + Y, X),
    "add": lambda: tr.add(X, Y),
    "exp": lambda: tr.exp("1"),
    "where": lambda: tr.where(X > 0, X, Y),
    "sum": lambda: tr.sum(X, axis=3),
    "method": lambda: X.sum(axis=3),
    "asarray": lambda: tr.asarray([object()]),
    "deferred function": lambda: tr.interp(X, X, Y),
    "device": lambda: tr.ones(3, device="cuda:0"),
    "compiled, warm": lambda: (INVERSE(tr.eye(2)), INVERSE(A)),
}
"""Errors without any frame of the library."""


def raised(f):
    try:
        f()
    except Exception as error:
        return error
    raise AssertionError("no error")


def modules(error):
    return [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]


def own(error):
    return [name for name in modules(error) if name.partition(".")[0] in OURS and "hidden" not in name]


@pytest.mark.parametrize("name", CLEAN)
def test_no_frame_of_the_library_is_shown(name, monkeypatch):
    monkeypatch.delenv("TENFERRO_TRACEBACK", raising=False)
    error = raised(CLEAN[name])
    assert own(error) == []
    assert modules(error).count("tenferro_tensor_core.hidden_frames") == 1
    monkeypatch.setenv("TENFERRO_TRACEBACK", "full")
    full = raised(CLEAN[name])
    assert own(full) and str(full) == str(error) and type(full) is type(error)
    assert getattr(full, "__notes__", []) == getattr(error, "__notes__", [])


def test_every_line_of_user_code_stays():
    error = raised(CLEAN["compiled gradient"])
    names = [
        frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_globals is globals()
    ]
    assert names == ["raised", "<lambda>", "misfit"]


def test_the_text_says_how_to_see_the_frames():
    text = "".join(traceback.format_exception(raised(CLEAN["gradient"])))
    assert 'File "<tenferro>", line 1, in ' in text
    assert "hidden frames, which TENFERRO_TRACEBACK=full shows" in text
    assert text.count("<tenferro>") == 1 and "in misfit" in text


def test_logging_and_new_processes_show_the_same():
    log = StringIO()
    logger = logging.getLogger("test_tracebacks")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(log))
    try:
        CLEAN["gradient"]()
    except ShapeError:
        logger.exception("no luck")
    assert "tenferro_ad" not in log.getvalue() and "<tenferro>" in log.getvalue()
    code = "import tenferro_runtime as tr\ntr.compile(lambda x: 1 / 0)(1.0)\n"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT).stderr
    assert "ZeroDivisionError" in shown and "packages" not in shown and "<tenferro>" in shown


def test_frames_of_others_stay():
    def through_numpy(v):
        return np.vectorize(lambda _: 1 / 0)(np.ones(2))

    error = raised(lambda: ad.grad(through_numpy)(X))
    assert any(name.startswith("numpy.") for name in modules(error)) and own(error) == []


@pytest.mark.parametrize("name", ["tenferro_quantum", "tenferro_ads.rules", "my.tenferro_ad", "tenferro"])
def test_plug_ins_with_similar_names_are_others(name):
    scope: dict[str, Any] = {"__name__": name}
    exec("def fails():\n    raise ValueError('plug-in')", scope)
    error = raised(hiding(scope["fails"]))
    assert name in modules(error) and own(error) == []


def test_bugs_of_the_library_keep_their_frames():
    scope: dict[str, Any] = {"__name__": "tenferro_runtime.passes"}
    exec("def fails():\n    raise KeyError('v3')", scope)
    assert "tenferro_runtime.passes" in own(raised(hiding(scope["fails"])))


def test_causes_are_kept_and_shortened():
    def fails(v):
        try:
            v + Y
        except ShapeError as cause:
            raise ValueError("my model") from cause

    error = raised(lambda: tr.compile(fails)(X))
    assert isinstance(error.__cause__, ShapeError) and own(error) == own(error.__cause__) == []

    def fails_again(v):
        try:
            v + Y
        except ShapeError:
            own_zero_division(1)

    error = raised(lambda: tr.compile(fails_again)(X))
    assert isinstance(error.__context__, ShapeError) and own(error.__context__) == []


def test_a_cycle_of_causes_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    hide_frames(one)


def test_hidden_frames_are_freed():
    class Token:
        pass

    scope: dict[str, Any] = {"__name__": "tenferro_runtime.secret", "AxisError": AxisError}
    exec("def fails(token):\n    kept = token\n    raise AxisError('gone')", scope)
    token = Token()
    alive = weakref.ref(token)
    error = raised(partial(hiding(scope["fails"]), token))
    del token
    names = [f.f_code.co_name for f, _ in traceback.walk_tb(error.__traceback__)]
    assert "fails" not in names
    del error
    gc.collect()
    assert alive() is None


def test_the_line_in_a_traceback_refers_to_no_caller():
    error = raised(CLEAN["operator"])
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    assert frame.f_back is None and frame.f_locals["__tracebackhide__"] and frame.f_code.co_filename == "<tenferro>"


def scaled(x, /, axis=None, *, keepdims=False):
    return x


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("dim", "write axis="),
        ("keepdim", "write keepdims="),
        ("axes", "write axis="),
        ("input", "pass x by position"),
        ("keepdmis", "did you mean 'keepdims'?"),
        ("colour", "it takes axis, keepdims"),
    ],
)
def test_a_wrong_keyword_names_the_right_one(keyword, text):
    with pytest.raises(KeywordError) as caught:
        boundary(scaled)(1, **{keyword: 0})
    assert str(caught.value) == f"scaled() got an unexpected keyword argument {keyword!r}; {text}"
    assert isinstance(caught.value, TypeError)
    assert caught.value.payload == {"function": "scaled", "keyword": keyword}
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_other_errors_about_arguments_are_pythons():
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        boundary(scaled)()  # type: ignore[call-arg]
    assert type(caught.value) is TypeError

    def inner(x):
        return scaled(x, dim=1)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="'dim'") as caught:  # of another function
        boundary(inner)(1)
    assert type(caught.value) is TypeError


def given(key: str) -> Any:
    """A keyword as users pass it, of which type checkers know nothing."""
    return {key: 1}


@pytest.mark.parametrize(
    ("call", "right"),
    [
        (lambda key: tr.linalg.svd_trunc(A, **given(key)), dict.fromkeys("rank max_rank chi D max_bond".split(), "k=")),
        (lambda key: tr.linalg.svd_trunc(A, **given(key)), dict.fromkeys(["cutoff", "tol", "eps"], "rtol= or atol=")),
        (lambda key: tr.linalg.eigh_trunc(A, **given(key)), {"rank": "k="}),
        (lambda key: tr.linalg.qr_trunc(A, **given(key)), {"rank": "k="}),
        (lambda key: tr.linalg.svd_random(A, **given(key)), {"rank": "k=", "niter": "iterations="}),
        (lambda key: tr.linalg.svd(A, **given(key)), {"some": "full_matrices="}),
        (lambda key: tr.linalg.pinv(A, **given(key)), {"rcond": "rtol="}),
        (lambda key: tr.linalg.norm(A, **given(key)), {"dim": "axis=", "keepdim": "keepdims="}),
        (lambda key: tr.linalg.cholesky(A, **given(key)), {"lower": "upper="}),
        (lambda key: tr.einsum("ij->", A, **given(key)), {"memory_limit": "memory_budget=", "path": "optimize="}),
        (lambda key: tr.fft.fft(A, **given(key)), {"dim": "axis=", "axes": "axis="}),
        (lambda key: tr.fft.fftn(A, **given(key)), {"dim": "axes=", "axis": "axes="}),
        (lambda key: tr.random.normal(tr.random.key(0), **given(key)), {"size": "shape="}),
        (lambda key: tr.random.permutation(x=A, **given(key)), {"seed": "key=", "rng": "key="}),
        (lambda key: tr.sum(A, **given(key)), {"dim": "axis=", "keepdim": "keepdims="}),
        (lambda key: A.max(**given(key)), {"dim": "axis=", "keepdim": "keepdims="}),
        (lambda key: tr.argmax(A, **given(key)), {"dim": "axis="}),
        (lambda key: tr.sort(A, **given(key)), {"dim": "axis=", "kind": "stable="}),
        (lambda key: tr.cumsum(A, **given(key)), {"dim": "axis="}),
        (lambda key: tr.linspace(0, 1, **given(key)), {"steps": "num="}),
        (lambda key: tr.reshape(A, **given(key)), {"newshape": "shape="}),
        (lambda key: tr.nn.softmax(A, **given(key)), {"dim": "axis="}),
        (lambda key: tr.mean(A, **given(key)), {"dim": "axis=", "keepdim": "keepdims="}),
        (lambda key: tr.std(A, **given(key)), {"dim": "axis=", "unbiased": "correction="}),
        (lambda key: tr.softmax(A, **given(key)), {"dim": "axis="}),
        (lambda key: tr.stack([A], **given(key)), {"dim": "axis="}),
        (lambda key: tr.concat([A], **given(key)), {"dim": "axis="}),
        (lambda key: tr.squeeze(A, **given(key)), {"dim": "axis="}),
        (lambda key: tr.permute_dims(A, **given(key)), {"dims": "axes="}),
        (lambda key: tr.grad(own_zero_division, **given(key)), {"argnum": "argnums="}),
        (lambda key: tr.vmap(own_zero_division, **given(key)), {"in_dims": "in_axes=", "out_dims": "out_axes="}),
        (lambda key: tr.compile(own_zero_division, **given(key)), {"donate_argnums": "donate="}),
        (lambda key: tr.scan(lambda c, _: (c, None), 0, None, **given(key)), {"num_steps": "length="}),
    ],
)  # fmt: skip
def test_first_guesses_of_keywords(call, right):
    for guess, name in right.items():
        with pytest.raises(KeywordError, match=f"unexpected keyword argument '{guess}'; write {name}$"):
            call(guess)


def test_operands_are_passed_by_position():
    for call, name in [(lambda: tr.sum(input=A), "x"), (lambda: tr.exp(a=A), "x"), (lambda: tr.add(A, other=A), "x2")]:  # type: ignore[call-arg]
        with pytest.raises(KeywordError, match=f"; pass {name} by position$") as caught:
            call()
        assert own(caught.value) == []
