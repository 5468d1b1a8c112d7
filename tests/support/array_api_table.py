"""The functions of the Array API standard 2024.12 and their parameters, as the standard writes them.

``/`` ends the positional-only parameters, ``*`` begins the keyword-only ones, ``*name`` takes any number.
"""

FUNCTIONS = """
__array_namespace_info__()
abs(x, /)
acos(x, /)
acosh(x, /)
add(x1, x2, /)
all(x, /, *, axis, keepdims)
any(x, /, *, axis, keepdims)
arange(start, /, stop, step, *, dtype, device)
argmax(x, /, *, axis, keepdims)
argmin(x, /, *, axis, keepdims)
argsort(x, /, *, axis, descending, stable)
asarray(obj, /, *, dtype, device, copy)
asin(x, /)
asinh(x, /)
astype(x, dtype, /, *, copy, device)
atan(x, /)
atan2(x1, x2, /)
atanh(x, /)
bitwise_and(x1, x2, /)
bitwise_invert(x, /)
bitwise_left_shift(x1, x2, /)
bitwise_or(x1, x2, /)
bitwise_right_shift(x1, x2, /)
bitwise_xor(x1, x2, /)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
ceil(x, /)
clip(x, /, min, max)
concat(arrays, /, *, axis)
conj(x, /)
copysign(x1, x2, /)
cos(x, /)
cosh(x, /)
count_nonzero(x, /, *, axis, keepdims)
cumulative_prod(x, /, *, axis, dtype, include_initial)
cumulative_sum(x, /, *, axis, dtype, include_initial)
diff(x, /, *, axis, n, prepend, append)
divide(x1, x2, /)
empty(shape, *, dtype, device)
empty_like(x, /, *, dtype, device)
equal(x1, x2, /)
exp(x, /)
expand_dims(x, /, *, axis)
expm1(x, /)
eye(n_rows, n_cols, /, *, k, dtype, device)
finfo(type, /)
flip(x, /, *, axis)
floor(x, /)
floor_divide(x1, x2, /)
from_dlpack(x, /, *, device, copy)
full(shape, fill_value, *, dtype, device)
full_like(x, /, fill_value, *, dtype, device)
greater(x1, x2, /)
greater_equal(x1, x2, /)
hypot(x1, x2, /)
iinfo(type, /)
imag(x, /)
isdtype(dtype, kind)
isfinite(x, /)
isinf(x, /)
isnan(x, /)
less(x1, x2, /)
less_equal(x1, x2, /)
linspace(start, stop, /, num, *, dtype, device, endpoint)
log(x, /)
log10(x, /)
log1p(x, /)
log2(x, /)
logaddexp(x1, x2, /)
logical_and(x1, x2, /)
logical_not(x, /)
logical_or(x1, x2, /)
logical_xor(x1, x2, /)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis, keepdims)
maximum(x1, x2, /)
mean(x, /, *, axis, keepdims)
meshgrid(*arrays, indexing)
min(x, /, *, axis, keepdims)
minimum(x1, x2, /)
moveaxis(x, source, destination, /)
multiply(x1, x2, /)
negative(x, /)
nextafter(x1, x2, /)
nonzero(x, /)
not_equal(x1, x2, /)
ones(shape, *, dtype, device)
ones_like(x, /, *, dtype, device)
permute_dims(x, /, axes)
positive(x, /)
pow(x1, x2, /)
prod(x, /, *, axis, dtype, keepdims)
real(x, /)
reciprocal(x, /)
remainder(x1, x2, /)
repeat(x, repeats, /, *, axis)
reshape(x, /, shape, *, copy)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis)
round(x, /)
searchsorted(x1, x2, /, *, side, sorter)
sign(x, /)
signbit(x, /)
sin(x, /)
sinh(x, /)
sort(x, /, *, axis, descending, stable)
sqrt(x, /)
square(x, /)
squeeze(x, /, axis)
stack(arrays, /, *, axis)
std(x, /, *, axis, correction, keepdims)
subtract(x1, x2, /)
sum(x, /, *, axis, dtype, keepdims)
take(x, indices, /, *, axis)
take_along_axis(x, indices, /, *, axis)
tan(x, /)
tanh(x, /)
tensordot(x1, x2, /, *, axes)
tile(x, repetitions, /)
tril(x, /, *, k)
triu(x, /, *, k)
trunc(x, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
unstack(x, /, *, axis)
var(x, /, *, axis, correction, keepdims)
vecdot(x1, x2, /, *, axis)
where(condition, x1, x2, /)
zeros(shape, *, dtype, device)
zeros_like(x, /, *, dtype, device)
"""

ARRAY_MEMBERS = """
dtype device mT ndim shape size T
__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
__floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__
__ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device
__radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rpow__ __rmod__ __rmatmul__ __rand__ __ror__ __rxor__
__rlshift__ __rrshift__
""".split()

CONSTANTS = "e inf nan newaxis pi".split()
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()


def signatures() -> dict[str, tuple[list[str], list[str], list[str]]]:
    """For each function its positional-only, its positional or keyword, and its keyword-only parameters."""
    table = {}
    for line in FUNCTIONS.split("\n"):
        if line:
            name, _, inner = line.rstrip(")").partition("(")
            groups: tuple[list[str], list[str], list[str]] = ([], [], [])
            words = [w for w in inner.split(", ") if w]
            at = 0 if "/" in words else 1
            for word in words:
                if word == "/":
                    at = 1
                elif word == "*":
                    at = 2
                else:
                    groups[at].append(word)
                    at = 2 if word.startswith("*") else at
            table[name] = groups
    return table
