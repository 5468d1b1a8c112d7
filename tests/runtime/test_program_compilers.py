"""The door for compilers of whole programs: who is asked, for what and how often, and what is said of unknown ones."""

import re

import numpy as np
import pytest

import tenferro_runtime as tr
from installed_plugins import Installed
from tenferro_ad import grad
from tenferro_runtime.compilers import MAX_EXECUTABLES, ProgramCompiler, compiled_by
from tenferro_runtime.extension import interpret
from tenferro_tensor import entry_points
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError

COMPILERS = "tenferro.compilers"


class Toy(ProgramCompiler):
    """Runs programs op by op, and remembers what it was requested."""

    name = "toy"

    def __init__(self) -> None:
        self.programs: list[tr.Program] = []
        self.donated: list[tuple[int, ...]] = []
        self.runs = 0

    def executable(self, program, donated):
        self.programs.append(program)
        self.donated.append(donated)

        def run(*raws):
            self.runs += 1
            tensors = [tr.Tensor.wrap(raw, spec) for raw, spec in zip(raws, program.inputs, strict=True)]
            return tuple([out._data for out in interpret(program, tensors)])

        return run


@pytest.fixture
def installed(monkeypatch):
    found = Installed(monkeypatch)
    entry_points.rescan()
    yield found
    monkeypatch.undo()
    entry_points.rescan()


@pytest.mark.parametrize("borrows", [False, True])
def test_numpy_arrays_reach_executables_uncopied_where_they_say_so(borrows):
    class Reading(Toy):
        def executable(self, program, donated):
            run = super().executable(program, donated)
            return lambda x: (seen.append(np.shares_memory(x, given)), run(x))[1]

    seen: list[bool] = []
    given, toy = np.ones(3), Reading()
    toy.borrows = borrows
    f = tr.compile(lambda x: x + 1, backend=toy)
    for _ in range(3):
        assert f(given).tolist() == [2.0, 2.0, 2.0]
    assert seen == [False, borrows, borrows]  # the first call is traced


def test_one_trace_and_one_executable_for_each_size():
    toy = Toy()
    f = tr.compile(lambda x, k=2.0: tr.sum(x * x) * k, backend=toy)
    for n in (3, 4, 3, 4, 3):
        assert float(f(tr.ones(n))) == 2 * n
    assert f.cache_info().traces == 1
    assert [p.inputs[0].shape for p in toy.programs] == [(3,), (4,)]
    assert toy.runs == 5
    assert not any(p.symbolic for p in toy.programs)


def test_explain_says_which_sizes_are_held_and_there_is_a_bound():
    toy = Toy()
    f = tr.compile(lambda x: x + 1, backend=toy)
    for n in range(MAX_EXECUTABLES + 8):
        f(tr.ones(n))
    text = str(f.explain(tr.ones(3)).form)
    assert "runs as one executable of toy" in text
    assert f"compiled for {MAX_EXECUTABLES} of at most {MAX_EXECUTABLES} sizes: n0 = 8; n0 = 9;" in text
    assert {step.kernel for step in f.explain(tr.ones(3)).steps} == {"toy"}
    asked = len(toy.programs)
    f(tr.ones(0))  # was dropped
    f(tr.ones(MAX_EXECUTABLES))
    assert len(toy.programs) == asked + 1


def test_derivatives_and_batches_are_compiled_too():
    toy = Toy()
    f = tr.compile(lambda x: tr.sum(tr.sin(x) * x), backend=toy)
    x = tr.asarray([0.5, 1.0])
    want = np.sin([0.5, 1.0]) + np.cos([0.5, 1.0]) * [0.5, 1.0]
    np.testing.assert_allclose(grad(f)(x), want)
    runs = toy.runs
    assert runs >= 2  # forward and backward
    np.testing.assert_allclose(tr.compile(grad(lambda x: tr.sum(tr.sin(x) * x)), backend=toy)(x), want)
    assert toy.runs == runs + 1
    np.testing.assert_allclose(tr.vmap(f)(tr.stack([x, 2 * x])), [float(f(x)), float(f(2 * x))])


def test_a_scope_holds_for_functions_that_name_no_compiler():
    inner, outer = Toy(), Toy()
    plain, own = tr.compile(lambda x: x * 2), tr.compile(lambda x: x * 3, backend=inner)
    exact = tr.compile(lambda x: x * 4, deterministic=True)
    x = tr.asarray([1.0])
    assert float(plain(x)[0]) == 2.0
    assert not outer.programs
    with compiled_by(outer):
        assert [float(f(x)[0]) for f in (plain, own, exact, plain)] == [2.0, 3.0, 4.0, 2.0]
        assert "executable of toy" in plain.explain(x).form
    assert (outer.runs, inner.runs, len(outer.programs)) == (2, 1, 1)
    assert float(plain(x)[0]) == 2.0
    assert outer.runs == 2
    assert "toy" not in plain.explain(x).form


def test_the_outermost_function_decides():
    toy = Toy()
    inner = tr.compile(lambda x: x * 2, backend=toy)
    outer = tr.compile(lambda x: inner(x) + 1)
    assert float(outer(tr.ones(1))[0]) == 3.0
    assert not toy.runs


def test_donated_arguments_are_gone():
    toy = Toy()
    f = tr.compile(lambda x, y: x + y, backend=toy, donate=0)
    x, y = tr.asarray(np.ones(3)) * 1.0, tr.ones(3)
    assert f(x, y).tolist() == [2.0, 2.0, 2.0]
    assert toy.donated == [(0,)]
    with pytest.raises(tr.DonatedError):
        x + 1
    assert (y + 1).tolist() == [2.0, 2.0, 2.0]
    kept = tr.asarray(np.ones(3)) * 1.0
    alias = kept[...]
    f(kept, y)
    assert toy.donated == [(0,), ()]
    assert alias.tolist() == [1.0, 1.0, 1.0]


def test_saved_programs_belong_to_no_compiler(tmp_path):
    toy = Toy()
    f = tr.compile(lambda x: x * 2, backend=toy)
    f.save(tmp_path / "double", tr.ones(3))
    assert tr.load(tmp_path / "double")(tr.ones(4)).tolist() == [2.0] * 4
    assert not toy.runs


def test_what_needs_steps_is_refused():
    f = tr.compile(lambda x: x * 2, backend=Toy())
    for ask in (f.plan, f.profile):
        with pytest.raises(tr.ProgramError, match="toy runs the program as a whole"):
            ask(tr.ones(3))
    assert f.find_nan(tr.asarray([1.0, np.nan])) is not None


def test_names(installed):
    asked = []

    def make(device):
        asked.append(device)
        return Toy()

    installed.offer(COMPILERS, "toy", make)
    installed.offer(COMPILERS, "broken", lambda device: 1 / 0)
    installed.offer(COMPILERS, "nothing", lambda device: None)
    entry_points.rescan()
    x = tr.ones(2)
    for name in ("toy", "toy:gate:1", "toy"):
        assert tr.compile(lambda x: x * 2, backend=name)(x).tolist() == [2.0, 2.0]
    assert asked == ["", "gate:1"]
    with pytest.raises(RegistryError, match="'broken' of distribution plugin 1.2 cannot be made: ZeroDivisionError"):
        tr.compile(lambda x: x, backend="broken")
    with pytest.raises(RegistryError, match="made None, which is not a ProgramCompiler"):
        tr.compile(lambda x: x, backend="nothing")
    text = re.escape("called 'wasm' is installed (installed: broken, nothing, toy); install the distribution that")
    with pytest.raises(BackendUnavailableError, match=text):
        tr.compile(lambda x: x, backend="wasm")
    text = re.escape(
        "; leave backend= out, so that programs run on the devices of their arguments, as after x = tr.to_dev"
    )
    with pytest.raises(BackendUnavailableError, match=text):
        tr.compile(lambda x: x, backend="cuda")
    with pytest.raises(BackendUnavailableError, match="pip install tenferro-xla"):
        tr.compile(lambda x: x, backend="xla:cuda:7")
    with pytest.raises(ArgumentError, match="backend=3 is not a compiler"):
        tr.compile(lambda x: x, backend=3)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="toy runs a program as a whole"):
        tr.compile(lambda x: x, backend=Toy(), placement="auto")
    with pytest.raises(ArgumentError, match="guarantees neither the bits"):
        tr.compile(lambda x: x, backend=Toy(), deterministic=True)
