"""A damaged program file is a `ProgramFileError`, or a program that obeys the law and runs; never anything else."""

import dataclasses
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from damaged_files import Damage, _members, _sealed
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_linalg import svd
from tenferro_runtime.exporting.files import FileLimits, ProgramFileError
from tenferro_runtime.extension import check_program
from tenferro_tensor import Spec
from tenferro_tensor_core import TenferroError

Pair = namedtuple("Pair", ["left", "right"])
N = tr.dim("n", min=1)
X = tr.asarray(np.random.default_rng(0).normal(size=(4, 3)))
LIMITS = FileLimits(text=10**7, constants=10**7, equations=10**4)
LARGE = 10**6
"""Elements of a value beyond which a program that somebody has changed on purpose is not run."""


@tr.register_dataclass
@dataclasses.dataclass
class Box:
    inside: Any
    outside: Any


def model(box: Box, xs: list[Any]) -> Any:
    y = tr.tanh(box.inside @ xs[0]) + box.outside
    return {"y": y**2, "numbers": (3, None, 2.5, 1j), "pair": Pair(tr.sum(y), [xs[1], True])}


def looped(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        return c * 0.5 + row, tr.sin(c)

    last, rows = tr.scan(step, x[0], x)
    return tr.cond(tr.sum(last) > 0.0, lambda v: v * 2.0, lambda v: v - 1.0, last), rows


def selected(x: Any) -> Any:
    kept = tr.compress(x, x[:, 0] > 0.0, axis=0)
    return tr.sum(kept * kept), kept.shape[0] + tr.sum(kept)


CONSTANT = tr.asarray(np.arange(3.0))
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "line": (tr.trace(lambda x: (tr.exp(x + CONSTANT), tr.sum(x)), Spec((N, 3), tr.float64), examples={"n": 4}), (X,)),
    "loops": (tr.trace(looped, X), (X,)),
    "sizes": (tr.trace(selected, Spec((N, 3), tr.float64), examples={"n": 4}), (X,)),
    "families": (tr.trace(lambda x: (svd(x)[1], einsum("ij,kj->ik", x, x), tr.fft.fft(x)), X), (X,)),
    "model": (model, (Box(X, 2.0), [X.mT, tr.ones(3, dtype=tr.int64)])),
    "gradient": (value_and_grad(lambda d: tr.sum(tr.sin(d["a"] @ d["b"]))), ({"a": X, "b": X.mT},)),
    "star": (lambda *args, **kwargs: args[0] * kwargs["k"], (X,)),
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("files")
    for name, (what, args) in CASES.items():
        if isinstance(what, tr.Program):
            what.save(folder / name)
        else:
            tr.compile(what).save(folder / name, *args, **({"k": 2.0} if name == "star" else {}))
    return {name: (folder / name).read_bytes() for name in CASES}


def run(name: str, loaded: Any) -> Any:
    args = CASES[name][1]
    with np.errstate(all="ignore"):
        if isinstance(loaded, tr.Program):
            return loaded.run(*args)
        return loaded(*args, **({"k": 2.0} if name == "star" else {}))


def small(program: tr.Program) -> bool:
    """Whether running a program that somebody has changed on purpose costs nothing."""
    inner = [value for eq in program.equations for value in eq.op.params.values()]
    inner = [p for v in inner for p in (v if isinstance(v, tuple) else (v,)) if isinstance(p, tr.Program)]
    sizes = [d for spec in program.specs.values() for d in spec.shape]
    numbers = [
        n for eq in program.equations for v in eq.op.params.values() for n in (v if isinstance(v, tuple) else (v,))
    ]
    large = [n for n in (*sizes, *numbers) if isinstance(n, int) and abs(n) > 2000]
    return (
        not large
        and not any(s.size > LARGE for s in program.specs.values() if not s.symbolic)  # type: ignore[operator]
        and all(map(small, inner))
    )


def leaves(value: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in tr.extension.flatten(value)[0]]


def hold(name: str, data: bytes, seed: int, folder: Path) -> str:
    """Load a damaged file, and run what comes out of it; returns what became of it."""
    damage = Damage(data, seed)
    path = folder / "damaged"
    path.write_bytes(damage.data)
    if damage.data == data:
        return "the same"
    try:
        loaded = tr.load(path, limits=LIMITS)
    except ProgramFileError:
        return "refused"
    assert damage.sealed, f"{name}, seed {seed}: {damage.what} went unnoticed"
    program = loaded if isinstance(loaded, tr.Program) else loaded.program
    check_program(program)
    repr(loaded), str(program)
    if not small(program):
        return "large"
    try:
        run(name, loaded)
    except TenferroError:
        return "refuses to run"
    return "runs"


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_are_refused_or_lawful(name: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    found = [hold(name, saved[name], seed, tmp_path) for seed in range(150)]
    assert {"refused", "runs"} <= set(found)


@pytest.mark.parametrize("name", CASES)
def test_an_undamaged_file_runs(name: str, saved: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(saved[name])
    what, args = CASES[name]
    want = what.run(*args) if isinstance(what, tr.Program) else what(*args, **({"k": 2.0} if name == "star" else {}))
    for got, value in zip(leaves(run(name, tr.load(tmp_path / "f"))), leaves(want), strict=True):
        np.testing.assert_allclose(got, value)


FUNCTIONS = {
    "fewer leaves of arguments": (lambda f: f["arguments"][2].pop(), "cannot be those of"),
    "an argument more": (lambda f: f["parameters"].append("more"), "cannot be those of"),
    "one parameter twice": (lambda f: f.update(parameters=["box", "box"]), "cannot be those of"),
    "a leaf for a container": (
        lambda f: f["arguments"][2].__setitem__(0, "*"),
        "takes 3 arrays, but its program takes 4",
    ),
    "a result more": (
        lambda f: f["result"][2].__setitem__(2, ["tuple", [], ["*"] * 4]),
        "returns 8 arrays and numbers",
    ),
    "no numbers": (lambda f: f.update(fixed=[]), "and 0 numbers are known"),
    "a number twice": (lambda f: f["fixed"].append(f["fixed"][0]), "distinct integer positions"),
    "a number nowhere": (lambda f: f["fixed"][0].__setitem__(0, 99), "has no position in the structure of results"),
    "no number": (lambda f: f["fixed"][0].__setitem__(1, "text"), "has no position in the structure of results"),
    "no index": (lambda f: f["fixed"][0].__setitem__(0, "0"), "distinct integer positions"),
    "keys that repeat": (lambda f: f["result"].__setitem__(1, ["y", "y", "pair"]), "cannot have the keys"),
    "keys of a tuple": (lambda f: f["arguments"].__setitem__(1, ["a"]), "cannot have the keys"),
    "a name that is none": (lambda f: f.update(name=3), "a function and its parameters have names"),
    "no structure": (lambda f: f.update(result=["list", "x", []]), "is not a structure of arguments or results"),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_damaged_function_part_is_refused_when_it_is_loaded(
    case: str, saved: dict[str, bytes], tmp_path: Path
) -> None:
    change, text = FUNCTIONS[case]
    texts, members = _members(saved["model"])
    change(texts["program.json"]["function"])
    (tmp_path / "f").write_bytes(_sealed(texts, members))
    with pytest.raises(ProgramFileError, match=text):
        tr.load(tmp_path / "f")
