"""Element types against NumPy: the promotion lattice, weak scalars, legality of conversions."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tenferro_tensor_core import (
    DTYPES,
    ArgumentError,
    DTypeError,
    bool_,
    can_cast,
    can_convert,
    complex64,
    complex128,
    complex_of,
    computing_type,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    inexact_of,
    int8,
    int64,
    is_bool,
    is_complex,
    is_inexact,
    is_integer,
    is_narrow,
    is_real_floating,
    is_signed,
    isdtype,
    kind_of,
    promote,
    real_of,
    result_type,
    uint8,
    weak,
)


def test_the_types_are_the_array_apis():
    info = np.__array_namespace_info__().dtypes()
    assert {dt.name for dt in DTYPES} == set(info)


@pytest.mark.parametrize("a", DTYPES, ids=str)
@pytest.mark.parametrize("b", DTYPES, ids=str)
def test_promotion_of_pairs_is_numpys(a, b):
    assert promote(a, b) is dtype(np.promote_types(a, b))


def test_promotion_of_triples_is_numpys_in_every_order():
    for triple in itertools.product(DTYPES, repeat=3):
        assert promote(*triple) == np.result_type(*triple), triple


def test_promotion_of_many_types_is_numpys_in_every_order():
    rng = np.random.default_rng(0)
    for _ in range(500):
        some = [DTYPES[i] for i in rng.integers(0, len(DTYPES), size=5)]
        assert promote(*some) == np.result_type(*some), some


@pytest.mark.parametrize("scalar", [True, 2, 2.0, 2j])
@pytest.mark.parametrize("dt", DTYPES, ids=str)
def test_weak_scalars_promote_as_in_numpy(dt, scalar):
    expected = np.result_type(dt, scalar)
    assert result_type(dt, scalar) is dtype(expected)
    assert result_type(scalar, dt) == expected
    assert weak(type(scalar), dt) == expected
    assert (np.ones(2, dt) * scalar).dtype == expected


def test_several_scalars_count_once_with_the_highest_kind():
    for scalars in itertools.product([True, 2, 2.0, 2j], repeat=2):
        assert result_type(*scalars) == np.result_type(*scalars)
        for a, b in itertools.product(DTYPES, repeat=2):
            assert result_type(a, scalars[0], b, scalars[1]) == np.result_type(a, scalars[0], b, scalars[1])


def test_subclasses_of_pythons_scalars_are_weak():
    class Count(int):
        pass

    assert result_type(int8, Count(3)) is int8 and result_type(float32, Count(3)) is float32


def test_pairs_of_names_promote_like_dtypes():
    assert promote("float32", complex128) is complex128 and weak(float, "int8") is float64  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="is not supported"):
        promote(float32, [("a", "f4")])


def test_numpy_scalars_are_strong_although_some_subclass_pythons():
    assert result_type(float32, np.float64(2)) is float64
    assert result_type(np.ones(3, np.float32), np.complex128(1)) is complex128


# convert keeps every value (b), cast is defined everywhere; rows are sources, columns targets.
# Order: bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128
CONVERT = """
bool        X X X X X X X X X X X X X
int8        . X X X X . . . . X X X X
int16       . . X X X . . . . X X X X
int32       . . . X X . . . . . X . X
int64       . . . . X . . . . . X . X
uint8       . . X X X X X X X X X X X
uint16      . . . X X . X X X X X X X
uint32      . . . . X . . X X . X . X
uint64      . . . . . . . . X . X . X
float32     . . . . . . . . . X X X X
float64     . . . . . . . . . . X . X
complex64   . . . . . . . . . . . X X
complex128  . . . . . . . . . . . . X
"""


def test_convert_and_cast_legality():
    for line in CONVERT.strip().splitlines():
        source, *marks = line.split()
        for target, mark in zip(DTYPES, marks, strict=True):
            assert can_convert(dtype(source), target) is (mark == "X"), (source, target)
            assert can_convert(dtype(source), target) == np.can_cast(source, target, "safe")
            assert can_cast(source, target)


NARROW = """
bool    float16  bfloat16
int8    float16  bfloat16
uint8   float16  bfloat16
int16   float32  float32
uint16  float32  float32
int32   float64  float64
uint32  float64  float64
int64   float64  float64
uint64  float64  float64
float16 float16  float32
float32 float32  float32
float64 float64  float64
complex64  complex64  complex64
complex128 complex128 complex128
"""


def test_narrow_floats_promote_as_float16_does_in_numpy():
    for line in NARROW.strip().splitlines():
        other, beside_float16, beside_bfloat16 = line.split()
        assert promote(other, float16) is promote(float16, other) is dtype(beside_float16)
        assert promote(other, "bfloat16") is promote("bfloat16", other) is dtype(beside_bfloat16)
        assert dtype(beside_float16) == np.promote_types(other, float16)
    for triple in itertools.product([*DTYPES, float16], repeat=3):
        assert promote(*triple) == np.result_type(*triple), triple


def test_narrow_floats_promote_alike_in_every_order():
    every = [*DTYPES, float16, dtype("bfloat16")]
    for triple in itertools.combinations(every, 3):
        assert len({promote(*order) for order in itertools.permutations(triple)}) == 1, triple
    assert promote("bfloat16", float16, int8) is float32
    assert promote("bfloat16", "int16") is float32


def test_numbers_are_weak_beside_narrow_floats():
    for narrow in (float16, dtype("bfloat16")):
        assert [weak(cls, narrow) for cls in (bool, int, float)] == [narrow] * 3
        assert weak(complex, narrow) is complex64
        assert result_type(narrow, 1.5) is narrow
        assert is_narrow(narrow)
        assert is_inexact(narrow)
        assert is_real_floating(narrow)
        assert is_signed(narrow)
        assert computing_type(narrow) is float32
        assert inexact_of(narrow) is real_of(narrow) is narrow
        assert complex_of(narrow) is complex64
        assert kind_of(narrow) == "f"
        assert isdtype(narrow, "real floating")
        assert isdtype(narrow, "numeric")
        assert not isdtype(narrow, ("integral", float32))
        assert can_convert(narrow, float32)
        assert not can_convert(float32, narrow)
    assert not can_convert(float16, dtype("bfloat16"))


def test_limits_of_narrow_floats():
    half, brain = finfo(float16), finfo("bfloat16")
    assert (half.bits, half.eps, half.max, half.smallest_normal) == (16, 2.0**-10, 65504.0, 2.0**-14)
    assert (brain.bits, brain.eps, brain.max) == (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127)
    assert (brain.smallest_normal, brain.min, brain.dtype) == (2.0**-126, -brain.max, dtype("bfloat16"))


def test_bfloat16_without_its_package_says_what_to_install():
    script = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "from tenferro_tensor_core import MissingDTypeError, dtype, promote\n"
        "import tenferro_runtime as tr\n"
        "for ask in (lambda: dtype('bfloat16'), lambda: tr.bfloat16, lambda: tr.zeros(2, dtype='bfloat16')):\n"
        "    try: ask()\n"
        "    except MissingDTypeError as error: print(error)\n"
        "print(hasattr(tr, 'bfloat16'), promote('float16', 'int8'))\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.count("pip install ml_dtypes") == 3
    assert "False float16" in said


def test_bfloat16_is_imported_when_it_is_asked_for():
    script = (
        "import sys, numpy as np, tenferro_runtime as tr\n"
        "x = tr.asarray([1.0], dtype='float16') + 1; print('ml_dtypes' in sys.modules)\n"
        "x = x.astype(tr.bfloat16); print('ml_dtypes' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split()[:2] == ["False", "True"]


def test_cast_is_undefined_outside_the_set():
    assert not can_cast(np.longdouble, float32)
    assert not can_cast(float32, object)


def test_dtype_canonicalises():
    for dt in DTYPES:
        for spelling in (dt, dt.name, dt.str, dt.type, pickle.loads(pickle.dumps(dt)), np.dtype(dt, metadata={"a": 1})):
            assert dtype(spelling) is dt
    assert [dtype(t) for t in (bool, int, float, complex)] == [bool_, int64, float64, complex128]
    assert dtype(np.longlong) is int64  # a type of its own in NumPy, with int64's format


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (object, "element type 'object' is not supported; convert to one of bool, int8"),
        (np.longdouble, "is not supported; convert to one of"),
        ("M8[s]", "element type 'datetime64[s]' is not supported"),
        ("U3", "element type '<U3' is not supported"),
        ("i4,f8", "is not supported"),
        (">f8", "float64 in foreign byte order ('>f8') is not supported; convert the data with a.astype('float64')"),
        ("nonsense", "'nonsense' is not an element type; use one of bool, int8"),
        ("f4,,", "'f4,,' is not an element type"),
        (3.5, "3.5 is not an element type"),
        (None, "None is not an element type; use one of bool"),
    ],
)
def test_dtype_refuses_everything_else(given, text):
    with pytest.raises(DTypeError) as caught:
        dtype(given)
    assert text in str(caught.value)
    assert "given" in caught.value.payload


def test_predicates_partition_the_types():
    for dt in DTYPES:
        assert is_bool(dt) + is_integer(dt) + is_real_floating(dt) + is_complex(dt) == 1
        assert is_inexact(dt) == np.issubdtype(dt, np.inexact)
        assert is_signed(dt) == (np.issubdtype(dt, np.signedinteger) or np.issubdtype(dt, np.inexact))
        assert real_of(dt) == np.real(np.zeros((), dt)).dtype
        assert complex_of(dt).kind == "c" and complex_of(dt) is complex_of(inexact_of(dt))
        assert inexact_of(dt) is (dt if is_inexact(dt) else float64)
    assert complex_of(float32) is complex64 and complex_of(int8) is complex128


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype_is_numpys(kind):
    for dt in DTYPES:
        assert isdtype(dt, kind) is np.isdtype(dt, kind)
        assert isdtype(dt, (kind, uint8)) is np.isdtype(dt, (kind, np.uint8))


def test_limits_are_numpys_as_python_numbers():
    for dt in DTYPES:
        if is_inexact(dt):
            ours, theirs = finfo(dt), np.finfo(dt)
            assert ours.dtype is real_of(dt)
            for name in ("bits", "eps", "max", "min", "smallest_normal"):
                assert getattr(ours, name) == getattr(theirs, name)
                assert type(getattr(ours, name)) in (int, float)
        elif is_integer(dt):
            assert (iinfo(dt).bits, iinfo(dt).min, iinfo(dt).max) == (
                np.iinfo(dt).bits,
                np.iinfo(dt).min,
                np.iinfo(dt).max,
            )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: promote(), ArgumentError, "promote needs at least one dtype, got none"),
        (lambda: result_type(), ArgumentError, "result_type needs at least one dtype or scalar"),
        (lambda: weak(str, int8), DTypeError, "is not a Python scalar type; weak scalars are bool, int, float"),
        (lambda: isdtype(int8, "integer"), ArgumentError, "isdtype does not know the kind 'integer'; use a dtype"),
        (lambda: finfo(int8), DTypeError, "finfo needs a floating or complex type, got int8; use iinfo"),
        (lambda: iinfo(bool_), DTypeError, "iinfo needs an integer type, got bool; use finfo"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
