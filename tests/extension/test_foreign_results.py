"""Whatever third-party code returns is held against its specs: compilers, native programs, transfers, executors."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.backend import SimBackend
from simulated.installed import simulated
from tenferro_ad import grad
from tenferro_einsum import einsum, run_on
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import interpret
from tenferro_runtime.running import fusion
from tenferro_tensor.backends import NativeProgram
from tenferro_tensor_core import RegistryError

WRONG: dict[str, Callable[[Any], Any]] = {
    "shape": lambda outs: (outs[0][:1], *outs[1:]),
    "axes": lambda outs: (outs[0][None], *outs[1:]),
    "dtype": lambda outs: (outs[0].astype(np.float32), *outs[1:]),
    "byte order": lambda outs: (outs[0].astype(">f8"), *outs[1:]),
    "subclass": lambda outs: (np.ma.masked_array(outs[0]), *outs[1:]),
    "list in the tuple": lambda outs: (outs[0].tolist(), *outs[1:]),
    "tuple in the tuple": lambda outs: ((outs[0],), *outs[1:]),
    "list": lambda outs: [*outs],
    "the array": lambda outs: outs[0],
    "None": lambda outs: None,
    "one more": lambda outs: (*outs, outs[0]),
    "one less": lambda outs: outs[1:],
    "the last": lambda outs: (*outs[:-1], outs[-1][..., :1]),
}


class Mistaken(ProgramCompiler):
    """Runs programs op by op, and spoils the results if the first operand is negative: that depends on the data."""

    name = "mistaken"

    def __init__(self, wrong: Callable[[Any], Any]) -> None:
        self.wrong = wrong

    def executable(self, program: tr.Program, donated: tuple[int, ...]) -> Callable[..., Any]:
        def run(*raws: Any) -> Any:
            tensors = [tr.Tensor.wrap(raw, spec) for raw, spec in zip(raws, program.inputs, strict=True)]
            outs = tuple([out._data for out in interpret(program, tensors)])
            return self.wrong(outs) if raws and np.min(np.asarray(raws[0]), initial=1.0) < 0 else outs

        return run


def pair(x: Any) -> Any:
    return x * 2.0, tr.concat([x, x])


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("function", [lambda x: x * 2.0, pair], ids=["one output", "two outputs"])
def test_results_of_compilers_are_checked_at_every_call(function: Callable[[Any], Any], wrong: str) -> None:
    f = tr.compile(function, backend=Mistaken(WRONG[wrong]))
    text = "executable of the compiler 'mistaken' returned .*, but the outputs of the program are float64.*in a tuple; "
    for n in (3, 5):
        f(tr.ones(n))
        for _ in range(2):
            with pytest.raises(RegistryError, match=f"{text}correct .*test_foreign_results.Mistaken") as caught:
                f(-tr.ones(n))
            assert caught.value.payload == {"compiler": "mistaken"}


def test_derivatives_and_single_runs_of_a_compiler_are_checked() -> None:
    f = tr.compile(lambda x: tr.sum(x**3), backend=Mistaken(lambda outs: tuple([o.astype(np.float32) for o in outs])))
    for call in (grad(f), tr.compile(grad(f), backend=Mistaken(WRONG["dtype"])), f):
        with pytest.raises(RegistryError, match="'mistaken' returned .*float32"):
            call(-tr.ones(3))


def test_sizes_without_elements_and_results_without_axes_are_checked() -> None:
    f = tr.compile(lambda x: tr.sum(x), backend=Mistaken(lambda outs: (outs[0][None],)))
    assert float(f(tr.ones(0))) == 0.0
    with pytest.raises(RegistryError, match=r"returned float64\[1\], but the outputs of the program are float64\[\]"):
        f(-tr.ones(2))


def test_an_executable_must_be_callable() -> None:
    class Nothing(ProgramCompiler):
        name = "nothing"

        def executable(self, program: tr.Program, donated: tuple[int, ...]) -> Any:
            return None

    with pytest.raises(RegistryError, match=r"of the compiler 'nothing' is None, which is not callable; correct .*"):
        tr.compile(lambda x: x + 1, backend=Nothing())(tr.ones(3))


def test_executables_write_to_donated_operands_only() -> None:
    class Writing(ProgramCompiler):
        name = "writing"

        def executable(self, program: tr.Program, donated: tuple[int, ...]) -> Callable[..., Any]:
            def run(x: Any, y: Any) -> Any:
                x += y
                return (x,)

            return run

    x, y = tr.ones(3) * 1.0, tr.ones(3)
    assert tr.compile(lambda x, y: x + y, backend=Writing(), donate=0)(x, y).tolist() == [2.0] * 3
    with pytest.raises(ValueError, match="read-only"):
        tr.compile(lambda x, y: x + y, backend=Writing())(y, y)
    assert y.tolist() == [1.0] * 3


def test_results_elsewhere_are_refused() -> None:
    with simulated() as runtime:
        x = -tr.asarray(np.ones(3), device="sim:1")

        class Elsewhere(ProgramCompiler):
            name = "elsewhere"

            def executable(self, program: tr.Program, donated: tuple[int, ...]) -> Callable[..., Any]:
                return lambda raw: (tr.asarray(np.ones(3), device="sim:0")._data,)

        class AtHost(ProgramCompiler):
            name = "at host"

            def executable(self, program: tr.Program, donated: tuple[int, ...]) -> Callable[..., Any]:
                return lambda raw: (np.ones(3),)

        with pytest.raises(RegistryError, match=r"returned float64\[3\] at sim:0, but .*sim:1"):
            tr.compile(lambda x: x + 1, backend=Elsewhere())(x)
        with pytest.raises(RegistryError, match=r"returned ndarray float64\[3\], but .*sim:1"):
            tr.compile(lambda x: x + 1, backend=AtHost())(x)
        runtime.synchronize_all()


MOVED = r"a transfer by .*Spoiling returned .*but the data are float64\[3\]"


class Spoiling(SimBackend):
    """Moves data wrongly, if it is told to."""

    up = down = staticmethod(lambda raw: raw)

    def upload(self, array: Any, device: Any) -> Any:
        return super().upload(self.up(array), device)

    def download(self, raw: Any) -> Any:
        return self.down(super().download(raw))


def test_transfers_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulated(backend=Spoiling):
        x = tr.asarray(np.ones(3), device="sim:1")
        for wrong in (lambda a: a[:2], lambda a: a.astype(np.float32)):
            monkeypatch.setattr(Spoiling, "up", staticmethod(wrong))
            with pytest.raises(RegistryError, match=MOVED):
                tr.asarray(np.ones(3), device="sim:1")
            monkeypatch.setattr(Spoiling, "up", staticmethod(lambda a: a))
            monkeypatch.setattr(Spoiling, "down", staticmethod(wrong))
            with pytest.raises(RegistryError, match=MOVED):
                x.numpy()
            monkeypatch.setattr(Spoiling, "down", staticmethod(lambda a: a))
        assert x.numpy().tolist() == [1.0] * 3


@pytest.mark.parametrize("way", ["upload", "download"])
def test_transfers_of_plans_are_checked(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return (x * 2).to_device("sim:1") + 1 if way == "upload" else (x + 1).to_device("cpu:0") * 2

    with simulated() as runtime:
        g = tr.compile(f)
        x = tr.asarray(np.ones(3), device="cpu:0" if way == "upload" else "sim:1")
        assert g(x).numpy().tolist() == [3.0 if way == "upload" else 4.0] * 3
        device: Any = runtime.device(1)
        right = getattr(device, way)
        if way == "upload":
            wrong = lambda host, stream, out=None: right(np.ones(2), stream)
        else:
            small = tr.asarray(np.ones(2), device="sim:1")._data
            wrong = lambda raw, stream, out=None: right(small, stream)
        monkeypatch.setattr(device, way, wrong)
        with pytest.raises(RegistryError, match=r"a transfer by .* returned float64\[2\].*but the data are"):
            g(x)
        monkeypatch.undo()
        runtime.synchronize_all()


class Whole(SimBackend):
    """Offers a native function of each program."""

    wrong: Callable[[Any], Any] = staticmethod(lambda outs: outs)

    def compiles_wholes(self) -> bool:
        return True

    def whole(self, function: Any, *, bare: bool = False, otherwise: Any = None) -> NativeProgram:
        def run(sizes: Any, *raws: Any) -> Any:
            n = len(raws[0].buffer.data) - 1
            return tr.asarray(np.ones(n), device="sim:1")._data

        return NativeProgram(run)


def test_native_programs_of_other_backends_are_checked() -> None:
    with simulated(backend=Whole):
        x = tr.asarray(np.ones(4), device="sim:1")
        f = tr.compile(lambda x: tr.fori_loop(0, 3, lambda i, c: c * 2.0 + 1.0, x))
        assert f(x).numpy().tolist() == [15.0] * 4
        f(x)
        fusion.wait()
        with pytest.raises(RegistryError, match=r"native program of .*Whole returned float64\[3\], but its"):
            f(x)


class Remote(ThreadPoolExecutor):
    """An executor of programs, whose results are spoiled."""

    def __init__(self, wrong: Callable[[Any], Any]) -> None:
        super().__init__(1)
        self.wrong = wrong

    def submit_program(self, program: tr.Program, arrays: Any) -> Future[Any]:
        return self.submit(lambda: self.wrong([np.asarray(x) for x in program.run(*arrays)]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda outs: [outs[0].astype(np.float32)],
        lambda outs: [outs[0][None]],
        lambda outs: [outs[0][..., :1]],
        lambda outs: [],
        lambda outs: [*outs, *outs],
    ],
    ids=["dtype", "axes", "shape", "none", "twice"],
)
def test_results_of_executors_are_checked(wrong: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 40))
    contract = lambda: einsum("ij,jk,kl,lm->im", x, x, x, x, memory_budget=30_000)
    with Remote(lambda outs: outs) as executor, run_on(executor):
        np.testing.assert_allclose(np.asarray(contract()), x @ x @ x @ x)
    with (
        Remote(wrong) as executor,
        run_on(executor),
        pytest.raises(
            RegistryError, match="submit_program of the executor returned .*but the outputs of the program are"
        ),
    ):
        contract()
