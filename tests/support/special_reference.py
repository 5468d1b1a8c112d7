"""Write the table of derivatives of special functions that the tests read, computed by mpmath with 40 digits.

Run by hand after adding functions or points::

    python3 dev run tests/support/special_reference.py [name ...]

Without names, the whole table is rewritten; it is a list of lines ``name, operands, orders, value``, sorted.
"""

# mypy: ignore-errors

import itertools
import json
import sys
from pathlib import Path

import mpmath as mp

TABLE = Path(__file__).parents[1] / "assets" / "special" / "derivatives.json"

ORDERS = [(0.5, 0.3), (1.3, 2.0), (0.0, 4.0), (3.0, 12.0), (10.0, 3.0), (2.2, 60.0), (-1.3, 2.0), (10.0, 13.0)]
INTEGERS = [(0, 0.3), (1, 2.0), (3, 7.0), (5, 30.0), (4, 0.01)]
REAL = [0.1, 0.9, 2.5, 7.0, 33.0, 400.0]
PARAMETER = [-50.0, -0.5, 0.0, 0.3, 0.9, 0.9999]
DEGREES = [(0, 0.3), (1, -0.7), (2, 0.4), (5, 0.9), (12, 1.0), (30, -0.2)]
SYMMETRIC = [(0.3, 0.5, 1.0), (1.0, 1.0, 1.0), (5.0, 0.01, 2.0)]


def half(f):
    return lambda n, x: mp.sqrt(mp.pi / (2 * x)) * f(n + mp.mpf(1) / 2, x)


def airy_scale(x):
    return mp.exp(2 * x * mp.sqrt(x) / 3)


def jacobi(n, a, b, x):
    """A polynomial in all operands, without the poles of mpmath's form."""
    n = int(n)
    terms = [
        mp.binomial(n + a, n - s) * mp.binomial(n + b, s) * ((x - 1) / 2) ** s * ((x + 1) / 2) ** (n - s)
        for s in range(n + 1)
    ]
    return mp.fsum(terms)


def laguerre(n, a, x):
    n = int(n)
    return mp.fsum((-1) ** k * mp.binomial(n + a, n - k) * x**k / mp.factorial(k) for k in range(n + 1))


def gegenbauer(n, a, x):
    n = int(n)
    return mp.fsum(
        (-1) ** k * mp.rf(a, n - k) / (mp.factorial(k) * mp.factorial(n - 2 * k)) * (2 * x) ** (n - 2 * k)
        for k in range(n // 2 + 1)
    )


def hermite(n, x):
    n = int(n)
    return mp.factorial(n) * mp.fsum(
        (-1) ** k * (2 * x) ** (n - 2 * k) / (mp.factorial(k) * mp.factorial(n - 2 * k)) for k in range(n // 2 + 1)
    )


def spherical(n, m, theta):
    return mp.re(mp.spherharm(n, m, theta, 0))


def associated(m, v, x):
    m, v = int(m), int(v)
    sign, size = (-1) ** m, abs(m)
    value = (
        sign * (1 - x * x) ** (mp.mpf(size) / 2) * mp.fac2(2 * size - 1) * gegenbauer(v - size, size + mp.mpf(1) / 2, x)
        if v >= size
        else mp.mpf(0)
    )
    return value if m >= 0 else sign * mp.factorial(v - size) / mp.factorial(v + size) * value


def owens(h, a):
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def ones(points):
    return [(x,) for x in points]


# name: the function, the points, and the operands that carry derivatives (all, where there is no third entry)
CASES = {
    "jv": (mp.besselj, ORDERS),
    "yv": (mp.bessely, ORDERS),
    "iv": (mp.besseli, ORDERS),
    "kv": (mp.besselk, ORDERS),
    "ive": (lambda v, x: mp.besseli(v, x) * mp.exp(-x), [*ORDERS, (0.7, 1e4)]),
    "kve": (lambda v, x: mp.besselk(v, x) * mp.exp(x), [*ORDERS, (0.7, 1e4)]),
    "yn": (mp.bessely, INTEGERS, (1,)),
    "kn": (mp.besselk, INTEGERS, (1,)),
    "spherical_jn": (half(mp.besselj), INTEGERS, (1,)),
    "spherical_yn": (half(mp.bessely), INTEGERS, (1,)),
    "spherical_in": (half(mp.besseli), INTEGERS, (1,)),
    "spherical_kn": (half(mp.besselk), INTEGERS, (1,)),
    "struve": (mp.struveh, [(0.5, 0.3), (1.3, 2.0), (0.0, 4.0), (3.0, 9.0), (2.2, 40.0)]),
    "modstruve": (mp.struvel, [(0.5, 0.3), (1.3, 2.0), (0.0, 4.0), (3.0, 9.0), (2.2, 40.0)]),
    "airy.ai": (mp.airyai, ones([-3.0, -0.5, 0.0, 0.9, 1.5, 4.0, 20.0])),
    "airy.aip": (lambda x: mp.airyai(x, 1), ones([-3.0, -0.5, 0.0, 0.9, 1.5, 4.0, 20.0])),
    "airy.bi": (mp.airybi, ones([-3.0, -0.5, 0.0, 0.9, 1.5, 4.0, 20.0])),
    "airy.bip": (lambda x: mp.airybi(x, 1), ones([-3.0, -0.5, 0.0, 0.9, 1.5, 4.0, 20.0])),
    "airye.ai": (lambda x: mp.airyai(x) * airy_scale(x), ones([0.2, 0.9, 1.5, 4.0, 20.0, 1e4])),
    "airye.aip": (lambda x: mp.airyai(x, 1) * airy_scale(x), ones([0.2, 0.9, 1.5, 4.0, 20.0, 1e4])),
    "airye.bi": (lambda x: mp.airybi(x) / airy_scale(x), ones([0.2, 0.9, 1.5, 4.0, 20.0, 1e4])),
    "airye.bip": (lambda x: mp.airybi(x, 1) / airy_scale(x), ones([0.2, 0.9, 1.5, 4.0, 20.0, 1e4])),
    "ellipk": (mp.ellipk, ones(PARAMETER)),
    "ellipkm1": (lambda p: mp.ellipk(1 - p), ones([1e-10, 1e-3, 0.5, 5.0])),
    "ellipe": (mp.ellipe, ones(PARAMETER)),
    "ellipkinc": (
        mp.ellipf,
        [(0.3, 0.5), (1.2, 0.9), (2.0, 0.5), (-4.0, 0.3), (0.7, -3.0), (1.5, 0.999), (0.01, 0.5), (0.8, 0.0)],
    ),
    "ellipeinc": (
        mp.ellipe,
        [(0.3, 0.5), (1.2, 0.9), (2.0, 0.5), (-4.0, 0.3), (0.7, -3.0), (1.5, 0.999), (0.01, 0.5), (0.8, 0.0)],
    ),
    "ellipj.sn": (lambda u, m: mp.ellipfun("sn", u, m=m), [(0.3, 0.5), (1.2, 0.9), (4.0, 0.3), (-2.0, 0.0001)]),
    "ellipj.cn": (lambda u, m: mp.ellipfun("cn", u, m=m), [(0.3, 0.5), (1.2, 0.9), (4.0, 0.3), (-2.0, 0.0001)]),
    "ellipj.dn": (lambda u, m: mp.ellipfun("dn", u, m=m), [(0.3, 0.5), (1.2, 0.9), (4.0, 0.3), (-2.0, 0.0001)]),
    "elliprc": (mp.elliprc, [(0.3, 0.5), (1.0, 1.0), (2.0, -0.7), (3.0, 0.2)]),
    "elliprd": (mp.elliprd, SYMMETRIC),
    "elliprf": (mp.elliprf, SYMMETRIC),
    "elliprg": (mp.elliprg, SYMMETRIC),
    "elliprj": (mp.elliprj, [(0.3, 0.5, 1.0, 0.7), (1.0, 2.0, 3.0, 1.0)]),
    "hyp0f1": (mp.hyp0f1, [(0.5, 0.3), (2.3, -5.0), (1.0, 20.0), (-0.6, 1.0), (20.0, 0.5)]),
    "hyp1f1": (mp.hyp1f1, [(0.5, 1.5, 0.3), (1.0, 2.0, -3.0), (2.5, 0.7, 8.0), (-1.5, 2.3, 5.0), (0.5, 1.0, -40.0)]),
    "hyp2f1": (
        mp.hyp2f1,
        [
            (0.5, 0.5, 1.0, 0.3),
            (1.0, 2.0, 3.5, -3.0),
            (0.5, 1.5, 2.0, 0.95),
            (1.0, 1.0, 2.0, -50.0),
            (-2.0, 3.0, 0.7, 0.4),
        ],
    ),
    "hyperu": (mp.hyperu, [(0.5, 1.5, 0.3), (1.0, 2.0, 3.0), (-1.5, 2.3, 5.0), (0.5, 1.0, 40.0), (1.0, 1.0, 0.01)]),
    "lambertw": (lambda z: mp.re(mp.lambertw(z)), ones([-0.3, -0.1, 0.0, 1e-9, 0.7, 30.0, 1e20])),
    "wrightomega": (lambda z: mp.re(mp.lambertw(mp.exp(z))), ones([-30.0, -3.0, -1.0, 0.1, 2.0, 20.0])),
    "owens_t": (owens, [(0.3, 0.5), (2.0, -1.5), (0.0, 2.0), (-1.0, 0.2)]),
    "eval_legendre": (lambda n, x: jacobi(n, 0, 0, x), DEGREES, (1,)),
    "eval_chebyt": (mp.chebyt, [(0, 0.3), (1, -0.7), (2, 0.4), (5, 0.9), (12, 0.97), (30, -0.2)], (1,)),
    "eval_chebyu": (lambda n, x: gegenbauer(n, 1, x), DEGREES, (1,)),
    "eval_hermite": (hermite, DEGREES, (1,)),
    "eval_hermitenorm": (lambda n, x: hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n, DEGREES, (1,)),
    "eval_laguerre": (lambda n, x: laguerre(n, 0, x), DEGREES, (1,)),
    "eval_genlaguerre": (
        laguerre,
        [(0, 0.5, 0.3), (1, 1.0, -0.7), (3, -0.3, 0.5), (12, 2.0, 0.9), (7, -0.9, 0.4)],
        (1, 2),
    ),
    "eval_gegenbauer": (gegenbauer, [(0, 0.5, 0.3), (1, 1.0, -0.7), (3, -0.3, 0.5), (12, 2.0, 0.9)], (1, 2)),
    "eval_jacobi": (
        jacobi,
        [(0, 0.5, 0.2, 0.3), (1, 1.0, -0.5, -0.7), (3, -0.3, 1.0, 0.5), (7, 0.0, 0.0, 0.4)],
        (1, 2, 3),
    ),
    "sph_legendre_p": (spherical, [(1, 1, 0.5), (3, -2, 1.2), (5, 0, 0.01), (4, 3, 2.5)], (2,)),
    "lpmv": (associated, [(0, 3, 0.3), (1, 2, -0.5), (2, 5, 0.9), (-1, 3, 0.2), (3, 3, 0.1), (4, 3, 0.1)], (2,)),
}
for name, f in {"j": mp.besselj, "y": mp.bessely, "i": mp.besseli, "k": mp.besselk}.items():
    for n in (0, 1):
        CASES[f"{name}{n}"] = (lambda x, f=f, n=n: f(n, x), ones(REAL))
for n in (0, 1):
    CASES[f"i{n}e"] = (lambda x, n=n: mp.besseli(n, x) * mp.exp(-x), ones([*REAL, 1e6]))
    CASES[f"k{n}e"] = (lambda x, n=n: mp.besselk(n, x) * mp.exp(x), ones([*REAL, 1e6]))
for name, f in {"ber": mp.ber, "bei": mp.bei, "ker": mp.ker, "kei": mp.kei}.items():
    CASES[name] = (lambda x, f=f: f(0, x), ones([0.2, 1.0, 3.0, 12.0]))


def rows(name):
    function, points, *rest = CASES[name]
    free = rest[0] if rest else tuple(range(len(points[0])))
    for point in points:
        at = [mp.mpf(x) for x in point]
        for orders in itertools.product(*[range(4) if i in free else (0,) for i in range(len(at))]):
            mixed = sum(o > 0 for o in orders)
            if sum(orders) > 3 or (mixed > 1 and sum(orders) > 2):
                continue
            value = mp.diff(function, tuple(at), orders) if any(orders) else function(*at)
            yield [name, list(point), list(orders), float(mp.re(value))]


def main(names):
    mp.mp.dps = 40
    table = []
    if names:
        table = [row for row in json.loads(TABLE.read_text()) if row[0] not in names]
    for name in names or CASES:
        table += rows(name)
        print(name)
    lines = sorted(json.dumps(row) for row in table)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1:])
