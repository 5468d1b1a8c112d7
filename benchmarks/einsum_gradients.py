"""Gradients of contractions of many operands beside the contraction: inner products of matrix product states.

    python3 dev run benchmarks/einsum_gradients.py [--quick] [--rounds N] [--only TEXT] [--skip TEXT ...]
        [--without NAME ...]

Least processor time on one core in milliseconds, warm: the contraction, recorded; the pullback, with the gradients of
all operands; value and gradients together, eager and compiled; and how many times as long as the contraction the
pullback takes. Last, how many times as long as tenferro's eager way, in turns with it, PyTorch's tape takes for value
and gradients, and JAX's compiled function, which is not made for more than `COMPILED` sites: that takes minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from contestants import TOLERANCE, measured, optional, parser, prepare

CASES = (
    (500, 3, "float64"), (500, 3, "complex128"), (500, 16, "float64"), (100, 3, "float64"), (100, 16, "float64"),
    (100, 16, "complex128"), (100, 64, "float64"), (100, 64, "complex128"),
)  # fmt: skip
"""Sites, bond dimension, dtype."""

COMPILED = 100


def states(count: int, bond: int, dtype: str) -> tuple[list[Any], list[list[Any]]]:
    """Tensors of two states, and their labels."""
    import numpy as np

    import tenferro_runtime as tr

    rng = np.random.default_rng(0)
    arrays, terms = [], []
    for side in ("ket", "bra"):
        for i in range(count):
            shape = (1 if i == 0 else bond, 2, 1 if i == count - 1 else bond)
            x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
            arrays.append(tr.asarray((x / (2 * bond) ** 0.5).astype(dtype)))
            terms.append([(side, i), i, (side, i + 1)])
    return arrays, terms


def zipped(count: int) -> list[tuple[int, ...]]:
    """The path that contracts two states of so many sites from the left."""
    pairs = [(0, count)]
    for i in range(1, count):
        pairs += [(2 * count + 2 * i - 2, i), (2 * count + 2 * i - 1, count + i)]
    live, path = list(range(2 * count)), []
    for number, pair in enumerate(pairs):
        path.append(tuple(sorted(live.index(v) for v in pair)))
        live = [*[v for v in live if v not in pair], 2 * count + number]
    return path


def zip_up(tensors: list[Any], tensordot: Callable[..., Any]) -> Any:
    """The inner product, with what a library has for two tensors at a time."""
    count = len(tensors) // 2
    left = tensordot(tensors[0], tensors[count], ([0, 1], [0, 1]))
    for ket, bra in zip(tensors[1:count], tensors[count + 1 :], strict=True):
        left = tensordot(tensordot(left, ket, ([0], [0])), bra, ([0, 1], [0, 1]))
    return left.reshape(()).real


def peers(arrays: list[Any], without: list[str]) -> dict[str, list[Callable[[], Any]]]:
    """Value and all gradients of other libraries; the value is given back."""
    import numpy as np

    arrays = [np.asarray(x) for x in arrays]
    calls: dict[str, list[Callable[[], Any]]] = {}
    torch = None if "torch" in without else optional("torch")
    jax = None if "jax" in without or len(arrays) > 2 * COMPILED else optional("jax")
    if torch is not None:
        leaves = [torch.from_numpy(x.copy()).requires_grad_() for x in arrays]

        def taped() -> Any:
            value = zip_up(leaves, lambda x, y, axes: torch.tensordot(x, y, dims=axes))
            torch.autograd.grad(value, leaves)
            return value.detach()

        calls["torch"] = [taped]
    if jax is not None:
        given = [jax.numpy.asarray(x) for x in arrays]
        compiled = jax.jit(jax.value_and_grad(lambda xs: zip_up(xs, jax.numpy.tensordot)))
        calls["jax"] = [lambda: jax.block_until_ready(compiled(given))[0]]
    return calls


def least(f: Callable[[], Any], rounds: int) -> float:
    """Milliseconds."""
    for _ in range(4):
        f()
    found = []
    for _ in range(rounds):
        start = time.process_time()
        f()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def main() -> None:
    """Print the table."""
    chosen = parser(__doc__).parse_args()
    prepare(chosen)
    rounds = 3 if chosen.quick else chosen.rounds

    import tenferro_runtime as tr
    from tenferro_ad import value_and_grad, vjp
    from tenferro_einsum import plan

    heads = ("forward", "recorded", "pullback", "both", "compiled", "times", "torch", "jax")
    print(f"{'sites, bond':<24}" + "".join(f"{head:>9}" for head in heads))
    for count, bond, dtype in CASES:
        name = f"{count}, {bond} {dtype}"
        if chosen.only not in name or any(text in name for text in chosen.skip):
            continue
        arrays, terms = states(count, bond, dtype)
        contraction = plan(*[v for pair in zip(arrays, terms, strict=True) for v in pair], [], optimize=zipped(count))
        both = value_and_grad(lambda *xs, p=contraction: tr.real(p(*xs)), argnums=tuple(range(2 * count)))
        compiled = tr.compile(both)
        value, pull = vjp(contraction, *arrays)
        seed = tr.ones((), dtype=value.dtype)
        times = [
            least(call, rounds)
            for call in (
                partial(contraction, *arrays), partial(vjp, contraction, *arrays), partial(pull, seed),
                partial(both, *arrays), partial(compiled, *arrays),
            )
        ]  # fmt: skip
        calls = {"tenferro": [lambda both=both, arrays=arrays: both(*arrays)[0]], **peers(arrays, chosen.without)}
        found = measured(calls, rounds, True, TOLERANCE[dtype])
        row = "".join(f"{t:9.2f}" for t in times) + f"{times[2] / times[0]:9.1f}"
        row += "".join(f"{found[k] / found['tenferro']:9.1f}" if k in found else f"{'-':>9}" for k in ("torch", "jax"))
        print(f"{name:<24}{row}", flush=True)


if __name__ == "__main__":
    main()
