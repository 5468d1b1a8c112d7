"""Programs as files: what comes back is the same program, and nothing else comes back at all."""

import dataclasses
import io
import itertools
import json
import os
import random
import subprocess
import sys
import tracemalloc
import zipfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from tenferro_ad import checkpoint, custom_rule, grad, jvp, value_and_grad, vjp
from tenferro_linalg import svd
from tenferro_runtime.exporting.files import FileLimits, ProgramFileError, _archive, load, save
from tenferro_runtime.exporting.files._encode import TABLES
from tenferro_runtime.extension import REGISTRY, Builder, call, check_program
from tenferro_tensor import HOST, Primitive, Spec, catalog, primitive, primitives, tensor
from tenferro_tensor_core import ArgumentError, RegistryError, ShapeError, as_size, dim_min, floordiv, likely
from tenferro_xla import lower_to_stablehlo
from thorough import tries

F8 = np.dtype("float64")
N, M = tr.dim("n"), tr.dim("m", min=1, max=1000)
Pair = namedtuple("Pair", ["left", "right"])


@tr.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object


@primitive(family="wave-company.shift.v2")
def shift(x: Spec, *, by: int) -> Spec:
    """Shift along the last axis."""
    return x


def roundtrip(program: tr.Program, folder: Path) -> tr.Program:
    saved = program.save(folder / "program")
    loaded = load(folder / "program", expected_hash=saved)
    assert loaded.content_hash == saved == program.content_hash
    return loaded


def rewritten(path: Path, change) -> Path:
    """The file with its description changed, and sealed again as a dishonest writer would."""
    with zipfile.ZipFile(path) as archive:
        texts = {n: archive.read(n).decode() for n in archive.namelist() if n.endswith(".json")}
        arrays = [
            np.load(io.BytesIO(archive.read(n))) for n in sorted(archive.namelist()) if n.startswith("constants/")
        ]
    plain = {n: json.loads(t) for n, t in texts.items()}
    arrays = change(plain["program.json"], plain["about.json"], arrays) or arrays
    _archive.write(path, {n: json.dumps(p) for n, p in plain.items()}, arrays)
    return path


@pytest.fixture
def line(tmp_path: Path) -> Path:
    k = tensor([1.0, 2.0, 3.0])
    tr.trace(lambda x: (tr.exp(2 * x + k), tr.sum(x, axis=0)), Spec((N, 3), F8), examples={"n": 4}).save(tmp_path / "f")
    return tmp_path / "f"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_functions())
def test_a_random_program_computes_the_same_after_it_is_loaded(tmp_path: Path, f: Random) -> None:
    program = tr.trace(f, *f.inputs)
    loaded = roundtrip(program, tmp_path)
    for got, want in zip(loaded.run(*f.inputs), program.run(*f.inputs), strict=True):
        same(got, want)


def test_a_program_reads_the_same_after_it_is_loaded(tmp_path: Path) -> None:
    program = tr.trace(lambda x, y: (x @ y * 2.5 - 1j, tr.where(x > 0, x, -x)), Spec((N, M), F8), Spec((M, 3), F8))
    loaded = roundtrip(program, tmp_path)
    assert str(loaded) == str(program)
    assert [eq.where for eq in loaded.equations] == [eq.where for eq in program.equations]
    assert loaded.guards == program.guards and loaded.examples == program.examples


def test_sizes_keep_their_algebra_bounds_and_guards(tmp_path: Path) -> None:
    b = Builder()
    x = b.input(Spec((N, M), F8), "x")
    size = floordiv(N * M + M, 2) + 3
    y = catalog.broadcast_in_dim(tr.sum(x), shape=(size, dim_min(N, M)), dims=())
    program = b.close([x, y], examples={"n": 5, "m": 7})
    loaded = roundtrip(program, tmp_path)
    assert loaded.inputs == program.inputs and loaded.outputs == program.outputs
    assert loaded.run(np.ones((3, 2)))[1].shape == (7, 2)


def test_the_order_of_sizes_is_kept(tmp_path: Path) -> None:
    dims = [tr.dim(f"n{i}") for i in range(12)]
    inner = tr.compile(lambda *xs: sum(tr.sum(x) * (i + 1) for i, x in enumerate(xs)))
    program = tr.trace(lambda *xs: inner(*xs) / xs[11].shape[0], *[Spec((d,), F8) for d in dims])
    values = [np.ones(i + 1) for i in range(12)]
    loaded = roundtrip(program, tmp_path)
    assert list(loaded.examples) == list(program.examples)
    same(loaded.run(*values)[0], program.run(*values)[0])
    same(grad(lambda x: loaded.run(x, *values[1:])[0])(np.ones(3)), tensor(np.full(3, 1 / 12)))


@pytest.mark.parametrize("seed", range(60))
def test_what_slices_pads_and_joins_leave_of_open_sizes_is_the_same_program(tmp_path: Path, seed: int) -> None:
    """Sizes that equal what is left of others: what a program records need not have the form that loading infers."""
    rng = random.Random(seed)

    def cut(x):
        parts = [x]
        for _ in range(5):
            y, i, axis = rng.choice(parts), rng.randrange(3), rng.randrange(2)
            rows = (slice(None),) * axis + (rng.choice([np.s_[i:], np.s_[: i + 1], np.s_[i : i + 2], np.s_[::2]]),)
            match rng.randrange(4):
                case 0:
                    y = tr.pad(y, ((i, 1), (0, i)))
                case 1:
                    y = tr.concat([y, y[rows]], axis=axis)
                case _:
                    y = y[rows]
            parts.append(y)
        sums = [tr.sum(y, axis=axis) for y in parts for axis in (0, 1)]
        pairs = itertools.product(sums[:2], sums[2:])
        return *parts, *[a * b for a, b in pairs if likely(as_size(a.shape[0]), "==", as_size(b.shape[0]))]

    x = np.arange(12.0).reshape(3, 4)[: rng.choice([2, 2, 3]), : rng.choice([1, 3, 4])]
    program = tr.compile(cut)
    wanted = program(x)
    program.save(tmp_path / "cut", x)
    for got, want in zip(load(tmp_path / "cut")(x), wanted, strict=True):
        same(got, want)


def test_a_size_that_another_stands_for_is_the_same_size(tmp_path: Path) -> None:
    """m, being equal to min(2, k), stands in max(0, m - 1): inference finds min(2, k) - min(1, k)."""

    def cut(x):
        return x[1:, 1:, :2] * tr.prod(x, axis=-1)

    x = np.arange(12.0).reshape(2, 2, 3) + 1
    program = tr.compile(cut)
    want = program(x)
    program.save(tmp_path / "cut", x)
    assert load(tmp_path / "cut")(x).tolist() == want.tolist()


def test_a_guard_holds_after_loading(tmp_path: Path) -> None:
    program = tr.trace(lambda x, y: x + y, Spec((N,), F8), Spec((tr.dim("k"),), F8), examples={"n": 4, "k": 4})
    loaded = roundtrip(program, tmp_path)
    assert [str(g) for g in loaded.guards] == [str(g) for g in program.guards] != []
    with pytest.raises(ShapeError):
        loaded.run(np.ones(3), np.ones(4))


def test_sizes_that_depend_on_data_are_kept(tmp_path: Path) -> None:
    def cut(x):
        kept = tr.compress(x, x > 0.0)
        return tr.sum(kept * kept), kept

    program = tr.trace(cut, Spec((N,), F8), examples={"n": 4})
    loaded = roundtrip(program, tmp_path)
    for values in ([1.0, -2.0, 3.0], [-1.0], []):
        x = tensor(np.array(values))
        for got, want in zip(loaded.run(x), program.run(x), strict=True):
            same(got, want)
    x = tensor([1.0, -2.0, 3.0])
    same(grad(lambda x: loaded.run(x)[0])(x), tensor([2.0, 0.0, 6.0]))


def test_derivatives_of_a_loaded_program_are_those_of_the_original(tmp_path: Path) -> None:
    a, b = tensor(np.random.default_rng(0).normal(size=(4, 3))), tensor(np.random.default_rng(1).normal(size=(3, 5)))
    program = tr.trace(lambda a, b: tr.sum(svd(a @ b)[1][:3] ** 2), a, b)
    loaded = roundtrip(program, tmp_path)

    def f(p: tr.Program):
        return lambda a: p.run(a, b)[0]

    same(grad(f(loaded))(a), grad(f(program))(a))
    same(jvp(f(loaded), (a,), (a,))[1], jvp(f(program), (a,), (a,))[1])
    same(vjp(f(loaded), a)[1](tensor(2.0))[0], vjp(f(program), a)[1](tensor(2.0))[0])
    same(tr.compile(grad(f(loaded)))(a), grad(f(program))(a))
    same(grad(lambda x: tr.sum(grad(f(loaded))(x) ** 2))(a), grad(lambda x: tr.sum(grad(f(program))(x) ** 2))(a))


def test_a_loaded_program_lowers_to_the_same_stablehlo(tmp_path: Path) -> None:
    program = tr.trace(grad(lambda x: tr.sum(tr.tanh(x @ x) * 2)), Spec((3, 3), F8))
    assert lower_to_stablehlo(roundtrip(program, tmp_path)).fingerprint == lower_to_stablehlo(program).fingerprint


def test_the_hash_is_of_what_is_computed(tmp_path: Path) -> None:
    def f(x):
        return 2 * x + tensor([1.0, 2.0])

    def g(other):
        return 2 * other + tensor([1.0, 2.0])

    spec = Spec((2,), F8)
    assert tr.trace(f, spec).content_hash == tr.trace(g, spec).content_hash
    different = [
        tr.trace(lambda x: 3 * x + tensor([1.0, 2.0]), spec),
        tr.trace(lambda x: 2 * x + tensor([1.0, 3.0]), spec),
        tr.trace(lambda x: 2.0 * x + tensor([1.0, 2.0]), spec),
        tr.trace(f, Spec((2,), np.dtype("float32"))),
    ]
    assert len({p.content_hash for p in different} | {tr.trace(f, spec).content_hash}) == 5


def test_equal_programs_make_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        tr.trace(lambda x: tr.sin(x) * tensor([1.0, 2.0]), Spec((2,), F8)).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_programs_inside_of_programs(tmp_path: Path) -> None:
    inner = tr.compile(lambda x: tr.tanh(x) * tensor([2.0, 3.0]))
    kept = checkpoint(lambda x: tr.exp(x) + x)
    program = tr.trace(lambda x: kept(inner(x)) + inner(x + 1), Spec((2,), F8))
    loaded = roundtrip(program, tmp_path)
    names = [eq.op.primitive.name for eq in loaded.equations]
    assert names.count("call") == 2 and "checkpointed" in names
    x = tensor([0.5, -1.0])
    same(loaded.run(x)[0], program.run(x)[0])
    same(grad(lambda x: tr.sum(loaded.run(x)[0]))(x), grad(lambda x: tr.sum(program.run(x)[0]))(x))


def loops(x):
    c, ys = tr.scan(lambda c, y: (tr.tanh(c * y + x[0]), c), tr.sum(x), x)
    c = tr.while_loop(lambda c: c < 10.0, lambda c: c * 2.0 + 1.0, c, max_steps=6)
    return tr.cond(c > 20.0, lambda c: c * 2.0, lambda c: c + tr.sum(ys), c)


@pytest.mark.parametrize("spec", [Spec((3,), F8), Spec((N,), F8)], ids=["fixed", "open"])
def test_branches_and_loops(tmp_path: Path, spec: Spec) -> None:
    program = tr.trace(loops, spec)
    loaded = roundtrip(program, tmp_path)
    x = tensor([0.5, -1.0, 2.0])
    same(loaded.run(x)[0], program.run(x)[0])
    same(grad(lambda x: loaded.run(x)[0])(x), grad(loops)(x))
    derivative = tr.trace(grad(loops), x)
    same(roundtrip(derivative, tmp_path).run(x)[0], grad(loops)(x))


@pytest.mark.parametrize(
    "value",
    [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1j, complex(float("nan"), -0.0), True, 3, -(2**40)],
    ids=repr,
)
def test_numbers_come_back_bit_by_bit(tmp_path: Path, value) -> None:
    b = Builder()
    x = b.input(Spec((2,), np.dtype("complex128")))
    loaded = roundtrip(b.close([catalog.mul(x, value)]), tmp_path)
    found = loaded.equations[0].operands[1]
    assert repr(found) == repr(value) and type(found.value) is type(value)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (3, 2)])
def test_constants_of_every_kind(tmp_path: Path, dtype: str, shape) -> None:
    k = np.array(np.random.default_rng(2).normal(size=shape) * 3, order="F").astype(dtype)
    b = Builder()
    loaded = roundtrip(b.close([b.constant(tensor(k))]), tmp_path)
    (constant,) = loaded.constants.values()
    assert constant.spec is Spec(shape, k.dtype) and np.array_equal(constant.numpy(), k)


def test_names_of_core_primitives_are_unique() -> None:
    from tenferro_runtime.exporting.files._vocabulary import CORE

    names = [p.name for p in primitives() if p.family is None and p._rule.__module__.startswith(CORE)]
    assert len(names) == len(set(names)) > 60


def test_a_process_that_only_loads_a_program_knows_every_primitive_of_the_core() -> None:
    code = """
import pkgutil, tenferro_runtime
from importlib import import_module
from tenferro_runtime.exporting.files._vocabulary import Vocabulary

known = {*Vocabulary({}).core}
for found in pkgutil.walk_packages(tenferro_runtime.__path__, "tenferro_runtime."):
    if ".adapters" not in found.name:
        import_module(found.name)
print(*sorted({*Vocabulary({}).core} - known), "while_loop" in known, "pure_callback" in known)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------ compiled functions


def test_a_compiled_function_comes_back_with_its_trees(tmp_path: Path) -> None:
    @tr.compile(static_argnames="power")
    def model(layer, x, power=2, *, scale=1.0):
        y = x @ layer.w + layer.b
        return {"y": y**power * scale, "shape": (3, None), "pair": Pair(y, [x])}

    layer, x = Layer(tr.ones((3, 2)), tensor([1.0, 2.0])), tensor(np.arange(6.0).reshape(2, 3))
    want = model(layer, x, power=3, scale=2)
    saved = model.save(tmp_path / "model", layer, x, power=3, scale=2)
    loaded = tr.load(tmp_path / "model", expected_hash=saved)
    assert isinstance(loaded, tr.SavedFunction) and loaded.parameters == ("layer", "x", "scale")
    got = loaded(layer, x, scale=2)
    assert type(got["pair"]) is Pair and got["shape"] == (3, None)
    same(got["y"], want["y"])
    same(got["pair"].left, want["pair"].left)
    same(loaded(layer, x=x, scale=True)["y"], model(layer, x, power=3, scale=1)["y"])
    g = grad(lambda x: tr.sum(loaded(layer, x, scale=2)["y"]))(x)
    same(g, grad(lambda x: tr.sum(model(layer, x, power=3, scale=2)["y"]))(x))


def test_value_and_grad_of_a_compiled_function_can_be_saved(tmp_path: Path) -> None:
    f = tr.compile(value_and_grad(lambda d: tr.sum(svd(d["a"] @ d["b"])[1][:3] ** 2)))
    rng = np.random.default_rng(3)
    d = {"a": tensor(rng.normal(size=(4, 3))), "b": tensor(rng.normal(size=(3, 5)))}
    f.save(tmp_path / "f", d)
    got, want = load(tmp_path / "f")(d), f(d)
    same(got[0], want[0])
    same(got[1]["b"], want[1]["b"])


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (
            lambda f: f(1.0),
            r"f takes \(x, y\), each once, but was called with 1 arguments by position",
        ),
        (lambda f: f(1.0, 2.0, z=3.0), r"static arguments are part of a saved function and must not be passed"),
        (lambda f: f(1.0, x=1.0, y=1.0), "each once"),
        (lambda f: f((1.0,), 2.0), r"f takes an array or a number at argument \[0\], got a tuple"),
    ],
)
def test_a_saved_function_refuses_other_arguments(tmp_path: Path, use, text: str) -> None:
    def f(x, y):
        return x + y

    f.__qualname__ = "f"
    tr.compile(f).save(tmp_path / "f", 1.0, 2.0)
    with pytest.raises(ArgumentError, match=text):
        use(load(tmp_path / "f"))


def test_a_class_of_the_arguments_is_never_imported(tmp_path: Path, line: Path) -> None:
    tr.compile(lambda p: p.left).save(tmp_path / "f", Pair(1.0, 2.0))

    def elsewhere(plain, about, arrays):
        plain["function"]["arguments"][2][0][0] = "antigravity:Pair"

    with pytest.raises(ProgramFileError, match="objects of class Pair, which is not there; import antigravity first"):
        load(rewritten(tmp_path / "f", elsewhere))

    def other_fields(plain, about, arrays):
        plain["function"]["arguments"][2][0] = [f"{__name__}:Pair", ["left"], ["*"]]

    with pytest.raises(ProgramFileError, match=r"the fields \('left', 'right'\) now, but .* saved with \('left',\)"):
        load(rewritten(tmp_path / "f", other_fields))


# ------------------------------------------------------------------------------------------------ what is refused


def test_a_primitive_without_a_name_in_the_world_cannot_be_saved(tmp_path: Path) -> None:
    @custom_rule(jvp=lambda primals, tangents, outs: (tangents[0],), infer=lambda x: x)
    def cube(x):
        return x

    program = tr.trace(lambda x: cube(x), Spec((2,), F8))
    with pytest.raises(ProgramFileError, match=r"cube of .* has no family id.*primitive\(family=") as caught:
        program.save(tmp_path / "f")
    assert any(__file__ in note for note in caught.value.__notes__)
    assert list(tmp_path.iterdir()) == []


def test_a_custom_rule_with_a_family_id_can_be_saved(tmp_path: Path) -> None:
    def cube(x):
        return x.numpy() ** 3

    def rule(primals, tangents, outs):
        return (3 * primals[0] ** 2 * tangents[0],)

    named = custom_rule(cube, jvp=rule, infer=lambda x: x, family="wave-company.cube.v1")
    loaded = roundtrip(tr.trace(lambda x: named(x), Spec((), F8)), tmp_path)
    assert float(grad(lambda x: loaded.run(x)[0])(2.0)) == 12.0
    with pytest.raises(RegistryError, match="'cube' is no family id"):
        custom_rule(cube, jvp=rule, infer=lambda x: x, family="cube")


def test_metadata_without_a_form_need_a_codec(tmp_path: Path) -> None:
    def infer(x: Spec, *, table: object) -> Spec:
        """A primitive with an object as metadata."""
        return x

    infer.__name__ = "lookup"
    lookup = Primitive(infer, family="wave-company.lookup.v1")
    program = tr.trace(lambda x: lookup(x, table=range(3)), Spec((2,), F8))
    with pytest.raises(ProgramFileError, match="lookup cannot be written to a file: a range.*register a codec"):
        program.save(tmp_path / "f")
    REGISTRY.codec(lookup, lambda p: {"stop": p["table"].stop}, lambda d: {"table": range(d["stop"])})
    loaded = roundtrip(program, tmp_path)
    assert loaded.equations[0].op.params["table"] == range(3)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (["warp", None, None], "uses the primitive warp, which this tenferro does not have; upgrade"),
        (["f", "nowhere-at-all.f.v1", "nowhere"], "provides; pip install nowhere-at-all"),
        (["f", "nowhere-at-all.f.v1", None], "provides; pip install nowhere-at-all"),
        (["shift", "wave-company.shift.v3", None], "wave-company.shift.v2 is installed; upgrade wave-company"),
        (["shift", "wave-company.shift.v1", None], "wave-company.shift.v2 is installed; install an older wave-company"),
        (["svd", "tenferro-linalg.svd.v9", "linalg"], "tenferro-linalg.svd.v1 is installed; upgrade tenferro-linalg"),
    ],
)
def test_what_is_not_installed_is_named(line: Path, entry, text: str) -> None:
    def change(plain, about, arrays):
        plain["tables"]["primitives"][0] = entry

    with pytest.raises(ProgramFileError, match=text):
        load(rewritten(line, change))


def test_other_versions_and_formats_are_refused(line: Path) -> None:
    for version, text in (([2, 0], "upgrade tenferro-runtime"), ([0, 9], "an older tenferro-runtime")):
        with pytest.raises(ProgramFileError, match=rf"version {version[0]}\.{version[1]}, .* reads 1.x; .*{text}"):
            load(rewritten(line, lambda plain, about, arrays, v=version: plain.update(version=v)))
    with pytest.raises(ProgramFileError, match="of the format 'else'"):
        load(rewritten(line, lambda plain, about, arrays: plain.update(format="else")))


def test_a_newer_minor_version_is_read(line: Path) -> None:
    load(rewritten(line, lambda plain, about, arrays: plain.update(version=[1, 7], more="later")))


def test_another_program_than_expected_is_refused(line: Path) -> None:
    with pytest.raises(ProgramFileError, match="has the content hash [0-9a-f]{64}, but 00 was expected"):
        load(line, expected_hash="00")


def test_no_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder .*absent to write a program into; make it first"):
        tr.trace(lambda x: x, tr.ones(2)).save(tmp_path / "absent" / "p.tenferro")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 500, b"tenferro program, sha256 " + b"0" * 64])
def test_what_is_no_program_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ProgramFileError, match="is not a program file, or it is damaged"):
        load(tmp_path / "f")


def test_every_changed_byte_is_noticed(line: Path, tmp_path: Path) -> None:
    data = line.read_bytes()
    damaged = tmp_path / "damaged"
    for i in range(len(data)):
        damaged.write_bytes(data[:i] + bytes([data[i] ^ (1 + i % 255)]) + data[i + 1 :])
        with pytest.raises(ProgramFileError, match="damaged"):
            load(damaged)


def test_every_truncation_is_noticed(line: Path, tmp_path: Path) -> None:
    data = line.read_bytes()
    for i in range(0, len(data), 7):
        (tmp_path / "short").write_bytes(data[:i])
        with pytest.raises(ProgramFileError, match="damaged"):
            load(tmp_path / "short")


def _places(data, path=()):
    """Paths of all values in plain data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _places(value, (*path, key))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(80, 300), deadline=None)
@given(st.data())
def test_a_dishonest_description_is_refused_or_a_lawful_program(tmp_path: Path, data) -> None:
    """Any value of the description replaced by any other: a typed error, or a program that obeys the law."""
    k = tensor([1.0, 2.0, 3.0])
    inner = tr.compile(lambda x: tr.tanh(x) * k)
    tr.trace(lambda x: tr.sum(inner(x) + 2.5, axis=0), Spec((N, 3), F8)).save(tmp_path / "f")
    tagged = st.dictionaries(st.sampled_from(["float", "dim", "program"]), st.integers(-1, 3), max_size=1)
    numbers = st.one_of(st.integers(-3, 40), st.just(2**70))
    junk = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(["", "x", "float64", "-inf"]), tagged)
    junk = st.one_of(junk, st.lists(st.integers(-2, 5), max_size=3))

    def change(plain, about, arrays):
        whole = {"plain": plain, "about": about}
        *path, last = data.draw(st.sampled_from([p for p in _places(whole) if len(p) > 1]))
        target = whole
        for key in path:
            target = target[key]
        target[last] = data.draw(junk)

    try:
        loaded = load(rewritten(tmp_path / "f", change))
    except ProgramFileError:
        return
    check_program(loaded)


def test_references_in_circles_are_refused(line: Path) -> None:
    def circle(plain, about, arrays):
        plain["tables"]["atoms"][0] = ["floordiv", [0], 2]

    with pytest.raises(ProgramFileError, match="nested too deeply, or in itself"):
        load(rewritten(line, circle))


def test_a_program_in_itself_is_refused(line: Path) -> None:
    def circle(plain, about, arrays):
        plain["tables"]["primitives"][0] = ["call", None, None]
        plain["tables"]["ops"][0] = [0, {"program": {"program": 0}}]

    with pytest.raises(ProgramFileError, match="nested too deeply, or in itself"):
        load(rewritten(line, circle))


def test_limits_bound_what_is_read(line: Path) -> None:
    for limits, text in (
        (FileLimits(text=100), "unpacks to more than 100 bytes.*raise FileLimits.text"),
        (FileLimits(equations=2), "more than 2 equations.*raise FileLimits.equations"),
        (FileLimits(constants=20), "more than 20 bytes.*raise FileLimits.constants"),
    ):
        with pytest.raises(ProgramFileError, match=text):
            load(line, limits=limits)
    load(line, limits=FileLimits(text=10_000, equations=5, constants=24))


def test_a_zip_bomb_is_not_unpacked(line: Path) -> None:
    def bomb(plain, about, arrays):
        about["sources"] = ["0" * 10_000_000]

    assert rewritten(line, bomb).stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(ProgramFileError, match="about.json .* unpacks to more than 1000000 bytes"):
            load(line, limits=FileLimits(text=1_000_000))
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_sizes_whose_product_explodes_are_refused(line: Path) -> None:
    def explode(plain, about, arrays):
        variables = [["var", f"a{i}", 0, None] for i in range(30)]
        sums = [[1, [i]] for i in range(30)]
        # A quotient by 1 is its dividend: a sum where an atom should be.
        plain["tables"]["atoms"] = [*variables, ["floordiv", [0], 1]]
        plain["tables"]["dims"] = [sums, [[1, [30] * 12]]]
        plain["tables"]["specs"][0][0] = [[1], 3]

    with pytest.raises(ProgramFileError, match="too many terms"):
        load(rewritten(line, explode))


def test_a_spec_that_inference_denies_is_refused(line: Path) -> None:
    def lie(plain, about, arrays):
        plain["tables"]["programs"][0]["equations"][0][2] = [len(plain["tables"]["specs"]) - 1]

    with pytest.raises(ProgramFileError, match="is recorded as .*, but inferred as"):
        load(rewritten(line, lie))


def test_constants_must_be_the_recorded_ones(line: Path) -> None:
    for other in (np.zeros(3), np.zeros(4), np.zeros(3, np.float32), np.array([None] * 3)):
        if other.dtype == object:
            with pytest.raises(ValueError, match="Object arrays cannot be saved"):
                rewritten(line, lambda plain, about, arrays, o=other: [o])
            continue
        with pytest.raises(ProgramFileError, match="constant 0"):
            load(rewritten(line, lambda plain, about, arrays, o=other: [o]))


def test_a_failed_save_leaves_the_old_file(line: Path, monkeypatch) -> None:
    before = line.read_bytes()

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        tr.trace(lambda x: x + 1, Spec((2,), F8)).save(line)
    assert line.read_bytes() == before and [p.name for p in line.parent.iterdir()] == [line.name]


def test_nothing_of_a_file_is_a_pickle_or_code(line: Path) -> None:
    with zipfile.ZipFile(line) as archive:
        assert sorted(archive.namelist()) == ["about.json", "constants/0.npy", "program.json"]
        plain = json.loads(archive.read("program.json"))
    assert sorted(plain["tables"]) == sorted(TABLES)
    assert call.name not in json.dumps(plain) and HOST.memory_space.kind in json.dumps(plain["tables"]["places"])


def test_a_loaded_program_can_be_saved_again(line: Path, tmp_path: Path) -> None:
    assert save(load(line), tmp_path / "again") == load(line).content_hash
    assert (tmp_path / "again").read_bytes() == line.read_bytes()
