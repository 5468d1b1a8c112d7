"""Elementary functions on vectors, for f32 and f64.

Bounds in units in the last place, held by tests over the whole range, subnormal results included:
exp exp2 log 1.5; sqrt 0.5; rsqrt 1.0; all others 2.5 (hypot sin cos tan asin acos atan atan2 sinh cosh tanh asinh
acosh atanh expm1 log1p log2 log10); logaddexp what its parts give. Special values follow C99. Every function needs fused multiply-add.

Polynomials are Chebyshev interpolants computed with 60 digits. Range reductions: W. J. Cody, W. Waite, Software Manual
for the Elementary Functions (1980); logarithms and inverse functions after the fdlibm of Sun Microsystems (1993).
"""

import math

from tenferro_cpu.native._emit import BITS, Vec

NARROW, WIDE = "f32", "f64"

# Tables by kind. Index 0 multiplies the lowest power.
EXP = {  # (exp(r) - 1 - r) / r^2, |r| <= ln(2)/2
    WIDE: (
        0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717,
        0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07,
        2.510038549551032e-08,
    ),
    NARROW: (
        0.500000001346581, 0.16666666681623232, 0.041666464925285904, 0.0083333109254809, 0.0013933649996309251,
        0.00019890990824673654,
    ),
}  # fmt: skip
EXPM1 = {  # the same, one degree more: small results are not carried by the 1
    WIDE: (
        0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748,
        0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07,
        2.5105217004720745e-08, 2.0914686968086876e-09,
    ),
    NARROW: EXP[NARROW],
}  # fmt: skip
SIN = {  # (sin(r) / r - 1) / r^2 in r^2, |r| <= pi/4
    WIDE: (
        -0.16666666666666666, 0.008333333333333331, -0.0001984126984126506, 2.7557319219335453e-06,
        -2.505210623115797e-08, 1.6058531414599232e-10, -7.586685070693618e-13,
    ),
    NARROW: (-0.16666666663853044, 0.008333331873837132, -0.00019840086263779024, 2.7249864658196823e-06),
}  # fmt: skip
COS = {  # (cos(r) - 1 + r^2 / 2) / r^4 in r^2
    WIDE: (
        0.041666666666666664, -0.0013888888888888887, 2.4801587301584645e-05, -2.755731922140076e-07,
        2.0876755790363434e-09, -1.1470460773975007e-11, 4.745865204122351e-14,
    ),
    NARROW: (0.04166666666431933, -0.0013888887671288145, 2.480059998355139e-05, -2.73009081705482e-07),
}  # fmt: skip
LOG = {  # (log((1+s)/(1-s)) / s - 2) / s^2 in s^2, 1/sqrt(2) <= (1+s)/(1-s) <= sqrt(2)
    WIDE: (
        0.666666666666667, 0.3999999999989322, 0.28571428628810996, 0.22222210674238516, 0.18182922513515942,
        0.15330617306743305, 0.1463003136412286,
    ),
    NARROW: (0.6666666654988318, 0.40000125594554364, 0.28550396959618013, 0.23341943388714562),
}  # fmt: skip
ATAN = {  # (atan(z) / z - 1) / z^2 in z^2, |z| <= tan(pi/8)
    WIDE: (
        -0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013, -0.09090904549884611,
        0.07692182535116648, -0.06664502215671447, 0.058580687568615106, -0.05085030492810941, 0.03921955253255129,
        -0.019162068915902573,
    ),
    NARROW: (-0.3333333175381697, 0.1999953879477192, -0.14263897112598675, 0.1074309966767457, -0.06449835224591496),
}  # fmt: skip
ASIN = {  # (asin(z) / z - 1) / z^2 in z^2, |z| <= 1/2
    WIDE: (
        0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
        0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
        0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
    ),
    NARROW: (
        0.16666666337430908, 0.07500094543497424, 0.04459940152851218, 0.03110066273549457, 0.017149238357677253,
        0.03369084720283012,
    ),
}  # fmt: skip

# Constants as sums of parts of decreasing size; "short" first parts have trailing zeros, so that k * part is exact.
LN2 = {WIDE: (0.6931471805599453, 2.3190468138462996e-17), NARROW: (0.6931471824645996, -1.9046542121259336e-09)}
LN2_SHORT = {WIDE: (0.6931471805598903, 5.497923018708371e-14), NARROW: (0.693115234375, 3.1946184945309415e-05)}
LOG10_2_SHORT = {
    WIDE: (0.30102999566395283, 2.8363394551044964e-14),
    NARROW: (0.301025390625, 4.605038981195214e-06),
}
PI_2 = {
    WIDE: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    NARROW: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15, 1.056299898220315e-23),
}
PI_4 = {WIDE: (0.7853981633974483, 3.061616997868383e-17), NARROW: (0.7853981852531433, -2.1855694143368964e-08)}
LOG2_E = {WIDE: (1.4426950408889634, 2.0355273740931033e-17), NARROW: (1.4426950216293335, 1.925963033500011e-08)}
LOG10_E = {WIDE: (0.4342944819032518, 1.098319650216765e-17), NARROW: (0.4342944920063019, -1.0103049952192578e-08)}

MANTISSA = {WIDE: 52, NARROW: 23}
BIAS = {WIDE: 1023, NARROW: 127}
SMALLEST_NORMAL = {WIDE: 2.0**-1022, NARROW: 2.0**-126}
FIELD = {WIDE: 0x7FF0000000000000, NARROW: 0x7F800000}
SQRT_HALF_BITS = {WIDE: 0x3FE6A09E667F3BCD, NARROW: 0x3F3504F3}


def fma(x: Vec, y: "Vec | float", z: "Vec | float") -> Vec:
    """``x * y + z`` in one rounding."""
    return x.block.call("fma", x, x.like(y), x.like(z))


def absolute(x: Vec) -> Vec:
    return x.block.call("fabs", x)


def with_sign(x: Vec, sign: Vec) -> Vec:
    return x.block.call("copysign", x, sign)


def sqrt(x: Vec) -> Vec:
    return x.block.call("sqrt", x)


def polynomial(x: Vec, coefficients: tuple[float, ...]) -> Vec:
    """Estrin's scheme: half the depth of Horner's, so that short chains overlap."""
    terms: list[Vec | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        paired: list[Vec | float] = []
        for low, high in zip(terms[::2], terms[1::2]):
            paired.append(fma(power, high, low))
        if len(terms) % 2:
            paired.append(terms[-1])
        terms = paired
        if len(terms) > 1:
            power = power * power
    result = terms[0]
    assert isinstance(result, Vec)
    return result


def _integer(x: Vec) -> Vec:
    """Whole floating-point lanes below 2^31 as i32."""
    return x.block.cast("fptosi", x, "i32")


def scaled(x: Vec, n: Vec) -> Vec:
    """``x * 2**n`` for whole `n` of the kind of `x`, with one rounding also where the result is subnormal."""
    block, kind = x.block, x.kind
    if block.lanes * BITS[kind] == 512:  # vscalef
        whole = _integer(n)
        form = f"call {block.vector(kind)} @llvm.ldexp.v{block.lanes}{kind}.v{block.lanes}i32("
        return block.apply(f"{form}{block.vector(kind)} %s, {block.vector('i32')} %s)", kind, x, whole)
    # Two factors, each a normal number: the range of n is twice the exponent's.
    whole = block.cast("sext", _integer(n), f"i{BITS[kind]}")
    half = whole >> 1
    first = ((half + BIAS[kind]) << MANTISSA[kind]).float
    second = ((whole - half + BIAS[kind]) << MANTISSA[kind]).float
    return x * first * second


def _clamped(x: Vec, low: float, high: float) -> Vec:
    """Within bounds; NaN stays."""
    x = x.block.where(x < low, x.like(low), x)
    return x.block.where(x > high, x.like(high), x)


EXP_RANGE = {WIDE: (-760.0, 720.0), NARROW: (-106.0, 90.0)}


def _reduced(x: Vec) -> tuple[Vec, Vec]:
    """x = n ln 2 + r."""
    n = x.block.call("rint", x * LOG2_E[x.kind][0])
    high, low = LN2[x.kind]
    return n, fma(n, -low, fma(n, -high, x))


def exp(x: Vec) -> Vec:
    n, r = _reduced(_clamped(x, *EXP_RANGE[x.kind]))
    return scaled(fma(r * r, polynomial(r, EXP[x.kind]), r) + 1.0, n)


def exp2(x: Vec) -> Vec:
    x = _clamped(x, *((-1100.0, 1030.0) if x.kind == WIDE else (-160.0, 130.0)))
    n = x.block.call("rint", x)
    high, low = LN2[x.kind]
    whole = x - n
    r = whole * high
    error = fma(whole, low, fma(whole, high, -r))
    return scaled(fma(r * r, polynomial(r, EXP[x.kind]), error) + r + 1.0, n)


def _expm1_parts(x: Vec) -> tuple[Vec, Vec, Vec]:
    """exp(x) - 1 = 2^n (p + q), with the larger part q exact."""
    n, r = _reduced(x)
    p = fma(r * r, polynomial(r, EXPM1[x.kind]), r)
    return n, p, 1.0 - scaled(x.like(1.0), -n)


def expm1(x: Vec) -> Vec:
    low = -44.0 if x.kind == WIDE else -20.0
    n, p, q = _expm1_parts(_clamped(x, low, EXP_RANGE[x.kind][1]))
    return with_sign(scaled(p + q, n), x)


def tanh(x: Vec) -> Vec:
    n, p, q = _expm1_parts(_clamped(absolute(x) * 2.0, 0.0, 44.0 if x.kind == WIDE else 20.0))
    total = p + q
    lost = scaled((q - total) + p, n - 1.0)
    e = scaled(total, n)
    y = e / (e + 2.0)
    rest = 1.0 - y  # the derivative by e is 2/(e+2)^2 = rest^2 / 2
    return with_sign(fma(lost, rest * rest, y), x)


def sinh(x: Vec) -> Vec:
    size = _clamped(absolute(x), 0.0, EXP_RANGE[x.kind][1])
    n, p, q = _expm1_parts(size)
    half = scaled(p + q, n - 1.0)
    # e/2 + e/(e+1)/2 with e = exp - 1; of an infinite half there is nothing to add.
    rest = x.block.where(half.equals(math.inf), x.like(0.0), half / fma(half, 2.0, 1.0))
    return with_sign(half + rest, x)


def cosh(x: Vec) -> Vec:
    n, r = _reduced(_clamped(absolute(x), 0.0, EXP_RANGE[x.kind][1]))
    half = scaled(fma(r * r, polynomial(r, EXP[x.kind]), r) + 1.0, n - 1.0)
    return half + 0.25 / half


def _split(x: Vec) -> tuple[Vec, Vec]:
    """x = 2^k m with m between 1/sqrt(2) and sqrt(2), for positive finite `x`."""
    block, kind = x.block, x.kind
    tiny = x < SMALLEST_NORMAL[kind]
    shift = float(MANTISSA[kind] + 2)
    x = block.where(tiny, x * 2.0**shift, x)
    offset = x.bits - SQRT_HALF_BITS[kind]
    whole = offset >> MANTISSA[kind]
    m = (x.bits - (whole << MANTISSA[kind])).float
    k = _from_integer(whole, kind)
    return block.where(tiny, k - shift, k), m


def _from_integer(n: Vec, kind: str) -> Vec:
    """Small integers as floating-point numbers; AVX2 converts no others."""
    return n.block.cast("sitofp", n.block.cast("trunc", n, "i32"), kind)


def _log_tail(f: Vec) -> tuple[Vec, Vec]:
    """log(1 + f) = f - (h - s (h + R)); gives h = f^2/2 and s (h + R)."""
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    return h, s * fma(z, polynomial(z, LOG[f.kind]), h)


def _log_edges(x: Vec, result: Vec) -> Vec:
    """Logarithms of what is not positive and finite."""
    where = x.block.where
    result = where(x.equals(math.inf), x, result)
    result = where(x.equals(0.0), x.like(-math.inf), result)
    return where(x.compare("uge", "?", 0.0), result, math.nan)


def log(x: Vec) -> Vec:
    k, m = _split(x)
    f = m - 1.0
    h, tail = _log_tail(f)
    high, low = LN2_SHORT[x.kind]
    result = fma(k, high, f - (h - fma(k, low, tail)))
    return _nan_through(x, _log_edges(x, result))


def _nan_through(x: Vec, result: Vec) -> Vec:
    return x.block.where(x.is_nan, x, result)


def log1p(x: Vec) -> Vec:
    u = x + 1.0
    lost = x.block.where(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    k, m = _split(u)
    f = m - 1.0
    h, tail = _log_tail(f)
    high, low = LN2_SHORT[x.kind]
    # What 1 + x lost is added to the logarithm; it matters only where u is small.
    low_part = fma(k, low, tail) + lost / u
    result = _log_edges(u, fma(k, high, f - (h - low_part)))
    return _nan_through(x, x.block.where(x.equals(0.0), x, result))


def _log_scaled(x: Vec, unit: tuple[float, float], power: tuple[float, float]) -> Vec:
    """k log(2) + log(m) in another base, carried in two parts."""
    k, m = _split(x)
    f = m - 1.0
    h, tail = _log_tail(f)
    high = f - h
    low = (f - high) - h + tail
    main = high * unit[0]
    rest = fma(high, unit[0], -main) + fma(high, unit[1], low * unit[0])
    whole = k * power[0]
    total = whole + main
    rest = rest + k * power[1] + ((whole - total) + main)
    return _nan_through(x, _log_edges(x, total + rest))


def log2(x: Vec) -> Vec:
    return _log_scaled(x, LOG2_E[x.kind], (1.0, 0.0))


def log10(x: Vec) -> Vec:
    return _log_scaled(x, LOG10_E[x.kind], LOG10_2_SHORT[x.kind])


CIRCLE_RANGE = {WIDE: 2.0**30, NARROW: 2.0**16}
"""Larger angles go to the C library, lane by lane."""


def _angle(x: Vec) -> tuple[Vec, Vec, Vec]:
    """x = n pi/2 + r + e; n as i32."""
    n = x.block.call("rint", x * (2 / math.pi))
    parts = PI_2[x.kind]
    first = fma(n, -parts[0], x)  # exact: a multiple of the last bit of pi/2 below 1
    # Close to a multiple of pi/2 little is left: the second part and its rounding are carried exactly (Knuth's sum).
    p = n * parts[1]
    r = first - p
    back = r - first
    e = ((first - (r - back)) - (p + back)) - fma(n, parts[1], -p)
    return _integer(n), r, fma(n, -parts[2], e)


def _sin_cos(r: Vec, e: Vec) -> tuple[Vec, Vec]:
    """Sine and cosine of r + e, |r| <= pi/4."""
    z = r * r
    # sin(r + e) = sin r + e cos r, cos(r + e) = cos r - e sin r
    sine = r + fma(z * r, polynomial(z, SIN[r.kind]), e * fma(z, -0.5, 1.0))
    h = z * 0.5
    one = 1.0 - h
    cosine = one + (((1.0 - one) - h) + fma(z * z, polynomial(z, COS[r.kind]), -(r * e)))
    return sine, cosine


def _circular(x: Vec, quarter: int, name: str) -> Vec:
    block, kind = x.block, x.kind
    wild = absolute(x).compare("ugt", "?", CIRCLE_RANGE[kind])
    tame = block.where(wild, x.like(0.0), x)
    n, r, e = _angle(tame)
    sine, cosine = _sin_cos(r, e)
    n = n + quarter
    usual = block.where((n & 1).equals(0), sine, cosine)
    usual = block.where((n & 2).equals(0), usual, -usual)
    if quarter == 0:
        usual = block.where(x.equals(0.0), x, usual)
    return block.rare(wild, usual, name + ("" if kind == WIDE else "f"), x)


def sin(x: Vec) -> Vec:
    return _circular(x, 0, "sin")


def cos(x: Vec) -> Vec:
    return _circular(x, 1, "cos")


def tan(x: Vec) -> Vec:
    block, kind = x.block, x.kind
    wild = absolute(x).compare("ugt", "?", CIRCLE_RANGE[kind])
    n, r, e = _angle(block.where(wild, x.like(0.0), x))
    sine, cosine = _sin_cos(r, e)
    even = (n & 1).equals(0)
    usual = block.where(even, sine, -cosine) / block.where(even, cosine, sine)
    return block.rare(wild, block.where(x.equals(0.0), x, usual), "tan" + ("" if kind == WIDE else "f"), x)


def _atan_of(top: Vec, bottom: Vec) -> Vec:
    """atan(top / bottom) for nonnegative operands, one division for all ranges."""
    where = top.block.where
    tan_1, tan_3 = math.sqrt(2) - 1, math.sqrt(2) + 1
    steep, middle = top > bottom * tan_3, top > bottom * tan_1
    up = where(steep, -bottom, where(middle, top - bottom, top))
    down = where(steep, top, where(middle, top + bottom, bottom))
    z = up / down
    w = z * z
    high, low = PI_4[top.kind]
    zero = top.like(0.0)
    base = where(steep, top.like(2 * high), where(middle, top.like(high), zero))
    rest = where(steep, top.like(2 * low), where(middle, top.like(low), zero))
    return base + (z + fma(z * w, polynomial(w, ATAN[top.kind]), rest))


def atan(x: Vec) -> Vec:
    return with_sign(_atan_of(absolute(x), x.like(1.0)), x)


def atan2(y: Vec, x: Vec) -> Vec:
    where = x.block.where
    up, right = absolute(y), absolute(x)
    # Two infinities count as equal numbers.
    both = up.equals(math.inf) & right.equals(math.inf)
    up, right = where(both, x.like(1.0), up), where(both, x.like(1.0), right)
    nothing = up.equals(0.0) & right.equals(0.0)
    right_ = where(nothing, x.like(1.0), right)
    steep = up > right_
    over = where(steep, right_, up) / where(steep, up, right_)
    base = _atan_of(over, x.like(1.0))
    high, low = PI_2[x.kind][:2]
    base = where(steep, high - (base - low), base)
    left = x.bits < 0
    base = where(left, 2 * high - (base - 2 * low), base)
    base = where(x.is_nan, x, where(y.is_nan, y, base))
    return with_sign(base, y)


def asin(x: Vec) -> Vec:
    size = absolute(x)
    outer = size > 0.5
    w = x.block.where(outer, (1.0 - size) * 0.5, size * size)
    p = w * polynomial(w, ASIN[x.kind])
    inner_value = fma(size, p, size)
    s = sqrt(w)
    rest = (fma(-s, s, w)) / (s + s)  # what the root lost
    rest = x.block.where(s.equals(0.0), x.like(0.0), rest)
    high, low = PI_4[x.kind]
    # pi/2 - 2 (s + s p), around pi/4 so that nothing is lost
    outer_value = high - (2.0 * fma(s, p, rest) - 2 * low - (high - 2.0 * s))
    result = with_sign(x.block.where(outer, outer_value, inner_value), x)
    return x.block.where(size > 1.0, x.like(math.nan), result)


def acos(x: Vec) -> Vec:
    where = x.block.where
    size = absolute(x)
    outer = size > 0.5
    w = where(outer, (1.0 - size) * 0.5, size * size)
    p = w * polynomial(w, ASIN[x.kind])
    s = sqrt(w)
    rest = where(s.equals(0.0), x.like(0.0), fma(-s, s, w) / (s + s))
    high, low = PI_2[x.kind][:2]
    inner_value = high - (x - fma(-x, p, low))
    near = 2.0 * (s + fma(s, p, rest))
    far = 2.0 * (high - (s + (fma(s, p, rest) - low)))
    result = where(outer, where(x > 0.0, near, far), inner_value)
    return where(size > 1.0, x.like(math.nan), result)


def asinh(x: Vec) -> Vec:
    where = x.block.where
    size = absolute(x)
    huge = size > (2.0**28 if x.kind == WIDE else 2.0**13)
    t = where(huge, x.like(1.0), size)
    square = t * t
    inside = t + square / (sqrt(square + 1.0) + 1.0)
    result = log1p(where(huge, size - 1.0, inside))
    return with_sign(where(huge, result + LN2[x.kind][0], result), x)


def acosh(x: Vec) -> Vec:
    where = x.block.where
    huge = x > (2.0**28 if x.kind == WIDE else 2.0**13)
    t = where(huge, x.like(1.0), x) - 1.0
    result = log1p(where(huge, x - 1.0, t + sqrt(fma(t, t, t + t))))
    return where(x < 1.0, x.like(math.nan), where(huge, result + LN2[x.kind][0], result))


def atanh(x: Vec) -> Vec:
    size = absolute(x)
    double = size + size
    small = size < 0.5
    inside = x.block.where(small, double + double * size / (1.0 - size), double / (1.0 - size))
    return with_sign(log1p(inside) * 0.5, x)


def hypot(x: Vec, y: Vec) -> Vec:
    where = x.block.where
    a, b = absolute(x), absolute(y)
    big = where(a > b, a, b)
    huge, tiny, step = (2.0**500, 2.0**-450, 2.0**600) if x.kind == WIDE else (2.0**60, 2.0**-50, 2.0**100)
    up, down = big < tiny, big > huge
    factor = where(up, x.like(step), where(down, x.like(1 / step), x.like(1.0)))
    back = where(up, x.like(1 / step), where(down, x.like(step), x.like(1.0)))
    a, b = a * factor, b * factor
    square = b * b
    result = sqrt(fma(a, a, square)) * back
    return where(absolute(x).equals(math.inf) | absolute(y).equals(math.inf), x.like(math.inf), result)


def logaddexp(x: Vec, y: Vec) -> Vec:
    where = x.block.where
    larger = where(x > y, x, y)
    gap = absolute(x - y)
    result = larger + log1p(exp(-gap))
    result = where(x.equals(y), x + LN2[x.kind][0], result)
    return where(x.is_nan, x, where(y.is_nan, y, result))
