"""Random single calls of the linear algebra and of the Fourier transforms."""

import random

from fuzzing.calls import CALLS, Call, Draw
from fuzzing.values import COMPLEX, FLOATS, INEXACT, operand, shape_of

GOOD = "({0} @ tr.matrix_transpose(tr.conj({0})) + 4 * tr.eye({1}, dtype={0}.dtype))"
"""A matrix that is Hermitian, positive definite and well conditioned."""


def _linalg(rng: random.Random) -> Call:
    n = rng.choice((1, 1, 2, 3, 4, 5, 9))
    stack = shape_of(rng, 0, 1)
    x, y = operand(rng, INEXACT, (*stack, n, n), "unit"), operand(rng, INEXACT, (*stack, n, n), "unit")
    y["dtype"] = x["dtype"]
    good = GOOD.format("a", n)
    texts = (
        f"linalg.det({good})", f"linalg.inv({good})", f"linalg.solve({good}, b)", f"linalg.cholesky({good})",
        f"linalg.eigvalsh({good})", "linalg.svdvals(a)", f"linalg.slogdet({good})", "linalg.matrix_norm(a)",
        "linalg.matrix_power(a, 3)", f"linalg.pinv({good})", "(lambda q: q.Q @ q.R)(linalg.qr(a))",
        f"(lambda e: (e.eigenvectors * e.eigenvalues[..., None, :]) @ tr.matrix_transpose(tr.conj(e.eigenvectors)))"
        f"(linalg.eigh({good}))", "(lambda s: (s.U * s.S[..., None, :]) @ s.Vh)(linalg.svd(a))",
        "linalg.vector_norm(a, axis=-1)", "linalg.matrix_rank(a * 0)", "linalg.trace(a)",
    )  # fmt: skip
    text = rng.choice(texts)
    top = "np.max(np.abs(a), initial=1)"
    name = text.partition("(")[0]
    scale = {"linalg.det": f"100 * {6**n} * {top}"}.get(name, f"100 * {top}")
    return Call(text, [x, y], 10 * n, scale if name not in ("linalg.matrix_rank", "linalg.slogdet") else "100")


def _fft(rng: random.Random) -> Call:
    shape = tuple([max(1, n) for n in shape_of(rng, 1)])
    axis = rng.randrange(-len(shape), len(shape))
    name = rng.choice("fft ifft rfft irfft hfft ihfft fftn ifftn fftshift ifftshift".split())
    dtypes = FLOATS if name in ("rfft", "ihfft") else COMPLEX if name in ("fft", "ifft", "hfft", "irfft") else INEXACT
    x = operand(rng, dtypes, shape)
    if name.endswith("shift"):
        return Call(f"fft.{name}(a, axes={axis})", [x])
    if name in ("irfft", "hfft") and shape[axis] < 2:
        name = "fft"
    if name.endswith("fftn"):
        return Call(f"fft.{name}(tr.astype(a, tr.result_type(a.dtype, tr.complex64)))", [x], 10, "np.sum(np.abs(a))")
    norm = rng.choice(("", ", norm='ortho'", ", norm='forward'"))
    length = rng.choice(("", "", f", n={rng.randint(2, 9)}"))
    return Call(f"fft.{name}(a, axis={axis}{length}{norm})", [x], 10, "2 * np.sum(np.abs(a))")


_ALL: tuple[tuple[int, Draw], ...] = (*CALLS, (3, _linalg), (4, _fft))
_WEIGHTS = [w for w, _ in _ALL]
_DRAWS = [d for _, d in _ALL]


def draw_call(rng: random.Random) -> Call:
    """Any call of any family."""
    return rng.choices(_DRAWS, _WEIGHTS)[0](rng)
