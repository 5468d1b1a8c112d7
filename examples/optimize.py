"""Gradient descent, Adam and L-BFGS over trees of parameters, beside optax where that is installed.

A method is a pair of functions: `init` makes the state of the method for parameters, `step` takes loss, parameters and
state one step further. Parameters are any tree: here a list of dataclasses, the layers of a small network. State is a
named tuple of trees of the same structure, so that a whole run is one `tr.scan`, compiled into one program.

    gradient descent    v <- momentum v + g,  p <- p - rate v
    Adam                m <- b1 m + (1 - b1) g,  s <- b2 s + (1 - b2) g^2,  p <- p - rate mhat / (sqrt(shat) + eps)
                        with mhat = m / (1 - b1^t), shat = s / (1 - b2^t)
                        (D. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015)
    L-BFGS              p <- p - t H g with H from the last differences of parameters and gradients by the two-loop
                        recursion, and the first t of 1, 1/2, 1/4, ... that decreases the loss enough
                        (J. Nocedal and S. Wright, Numerical Optimization, 2nd ed., algorithms 3.1, 7.4 and 7.5)

Run it with `python3 dev run examples/optimize.py --steps 200`. Where jax and optax can be imported, the table shows
what optax's `sgd`, `adam` and `scale_by_lbfgs` reach from the same start, and how far apart the parameters are then.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad

Tree = Any
Loss = Callable[[Tree], Any]


class Method(NamedTuple):
    """How parameters go down.

    Attributes:
        init: parameters to the first state.
        step: loss, parameters and state to the next parameters, the next state, and the loss before the step.
    """

    init: Callable[[Tree], Any]
    step: Callable[[Loss, Tree, Any], tuple[Tree, Any, Any]]


def zeros(tree: Tree) -> Tree:
    """A tree of zeros like another."""
    return tr.tree_map(tr.zeros_like, tree)


def dot(a: Tree, b: Tree) -> Any:
    """The inner product of two trees."""
    return tr.tree_reduce(tr.add, tr.tree_map(lambda x, y: tr.sum(x * y), a, b))


def moved(a: Tree, t: Any, b: Tree) -> Tree:
    """a + t b."""
    return tr.tree_map(lambda x, y: x + t * y, a, b)


def gradient_descent(rate: float, momentum: float = 0.0) -> Method:
    """Steps along the gradient, or along a decaying sum of gradients."""

    def step(loss: Loss, params: Tree, velocity: Tree) -> tuple[Tree, Tree, Any]:
        value, g = value_and_grad(loss)(params)
        velocity = tr.tree_map(lambda v, d: momentum * v + d, velocity, g)
        return moved(params, -rate, velocity), velocity, value

    return Method(zeros, step)


class Moments(NamedTuple):
    """State of Adam: steps so far, and decaying means of the gradient and of its square."""

    count: Any
    mean: Tree
    square: Tree


def adam(rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Method:
    """Steps whose length adapts to the size of each gradient."""

    def step(loss: Loss, params: Tree, state: Moments) -> tuple[Tree, Moments, Any]:
        value, g = value_and_grad(loss)(params)
        count = state.count + 1.0
        mean = tr.tree_map(lambda m, d: b1 * m + (1 - b1) * d, state.mean, g)
        square = tr.tree_map(lambda s, d: b2 * s + (1 - b2) * d * d, state.square, g)
        first, second = 1 - b1**count, 1 - b2**count
        lower = lambda p, m, s: p - rate * (m / first) / (tr.sqrt(s / second) + eps)
        return tr.tree_map(lower, params, mean, square), Moments(count, mean, square), value

    return Method(lambda params: Moments(tr.asarray(0.0), zeros(params), zeros(params)), step)


class History(NamedTuple):
    """State of L-BFGS: where it was, and the last differences, oldest first; weights are 0 where there are none yet."""

    count: Any
    params: Tree
    slope: Tree
    moves: Tree
    bends: Tree
    weights: Any


def lbfgs(memory: int = 10, decrease: float = 1e-4, halvings: int = 30) -> Method:
    """Quasi-Newton steps from the last `memory` differences, with a line search that halves the step."""

    def push(rows: Any, row: Any) -> Any:
        return tr.concat([rows[1:], tr.expand_dims(row, axis=0)])

    def remembered(state: History, params: Tree, g: Tree) -> tuple[History, Any]:
        """The history with the last step in it, and the scale of the inverse Hessian to start from."""
        move, bend = moved(params, -1.0, state.params), moved(g, -1.0, state.slope)
        bent, norm2, known = dot(move, bend), dot(bend, bend), state.count > 0
        convex = known & (bent > 0)  # else H would no longer be positive definite: the pair is left out
        weight = tr.where(convex, 1 / tr.where(convex, bent, 1.0), 0.0)
        rows = [
            tr.tree_map(lambda r, x: push(r, tr.where(known, x, 0.0)), rows, x)
            for rows, x in ((state.moves, move), (state.bends, bend))
        ]
        first = tr.minimum(1.0, 1 / tr.sqrt(dot(g, g)))  # no further than 1
        scale = tr.where(convex, bent / tr.where(convex, norm2, 1.0), first)
        return History(state.count + 1, params, g, *rows, push(state.weights, weight)), scale

    def direction(state: History, scale: Any) -> Tree:
        """-H g by the two loops."""
        pairs = (state.moves, state.bends, state.weights)

        def down(q: Tree, pair: Any) -> tuple[Tree, Any]:
            move, bend, weight = pair
            a = weight * dot(move, q)
            return moved(q, -a, bend), a

        def up(r: Tree, pair: Any) -> tuple[Tree, None]:
            (move, bend, weight), a = pair
            return moved(r, a - weight * dot(bend, r), move), None

        q, a = tr.scan(down, state.slope, pairs, reverse=True)
        r, _ = tr.scan(up, tr.tree_map(lambda x: scale * x, q), (pairs, a))
        return tr.tree_map(tr.negative, r)

    def step(loss: Loss, params: Tree, state: History) -> tuple[Tree, History, Any]:
        value, g = value_and_grad(loss)(params)
        state, scale = remembered(state, params, g)
        way = direction(state, scale)
        slope = dot(g, way)

        def too_far(t: Any) -> Any:
            return (loss(moved(params, t, way)) > value + decrease * t * slope) & (t > 0.5**halvings)

        t = tr.while_loop(too_far, lambda t: 0.5 * t, tr.ones_like(value))
        return moved(params, t, way), state, value

    def init(params: Tree) -> History:
        none = tr.tree_map(lambda x: tr.zeros((memory, *x.shape), dtype=x.dtype), params)
        return History(tr.asarray(0), zeros(params), zeros(params), none, none, tr.zeros(memory))

    return Method(init, step)


def minimize(loss: Loss, params: Tree, method: Method, steps: int) -> tuple[Tree, Any]:
    """Parameters after some steps, and the loss before each of them: one compiled loop."""

    def step(carry: tuple[Tree, Any], _: None) -> tuple[tuple[Tree, Any], Any]:
        params, state, value = method.step(loss, *carry)
        return (params, state), value

    def run(params: Tree) -> tuple[Tree, Any]:
        (params, _), values = tr.scan(step, (params, method.init(params)), None, length=steps)
        return params, values

    return tr.compile(run)(tr.tree_map(tr.asarray, params))  # type: ignore[no-any-return]


# -- a network to fit ---------------------------------------------------------------------------------------------


@tr.register_dataclass
@dataclass
class Layer:
    """Weights and shifts of one layer."""

    w: Any
    b: Any


def network(widths: Sequence[int], seed: int) -> list[Layer]:
    """Layers with random weights."""
    rng = np.random.default_rng(seed)
    return [Layer(rng.normal(size=(m, n)) / m**0.5, np.zeros(n)) for m, n in pairwise(widths)]


def misfit(xp: Any, x: Any, y: Any, layers: Sequence[Any]) -> Any:
    """Mean squared error of the network, written with the array functions of `tr` or of `jax.numpy`."""
    for layer in layers[:-1]:
        x = xp.tanh(xp.matmul(x, layer.w) + layer.b)
    return xp.mean((xp.matmul(x, layers[-1].w) + layers[-1].b - y) ** 2)


def waves(count: int) -> tuple[Any, Any]:
    """Points of a wave."""
    x = np.linspace(-2, 2.5, count)[:, None]  # an odd function on a symmetric grid has slopes of rounding errors
    return x, np.sin(3 * x)


METHODS = {
    "gradient descent": gradient_descent(0.05, momentum=0.9),
    "Adam": adam(0.01),
    "L-BFGS": lbfgs(10),
}


# -- beside optax -------------------------------------------------------------------------------------------------


def with_optax(name: str, layers: list[Layer], x: Any, y: Any, steps: int) -> tuple[list[Any], Any] | None:
    """The same run by optax: leaves of the parameters in the end, and the losses; None without jax and optax."""
    try:
        jax, optax = import_module("jax"), import_module("optax")
    except ModuleNotFoundError:
        return None
    line = partial(optax.scale_by_backtracking_linesearch, slope_rtol=1e-4, decrease_factor=0.5)
    methods: dict[str, Any] = {
        "gradient descent": lambda: optax.sgd(0.05, momentum=0.9),
        "Adam": lambda: optax.adam(0.01),
        "L-BFGS": lambda: optax.chain(
            optax.scale_by_lbfgs(10), optax.scale(-1.0), line(max_backtracking_steps=30, increase_factor=float("inf"))
        ),
    }
    with jax.experimental.enable_x64() if hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True):
        method = optax.with_extra_args_support(methods[name]())
        leaves, treedef = tr.tree_flatten(layers)
        loss = lambda p: misfit(jax.numpy, x, y, tr.tree_unflatten(treedef, p))

        def step(carry: Any, _: None) -> Any:
            p, state = carry
            value, g = jax.value_and_grad(loss)(p)
            updates, state = method.update(g, state, p, value=value, grad=g, value_fn=loss)
            return (optax.apply_updates(p, updates), state), value

        start = [jax.numpy.asarray(leaf) for leaf in leaves]
        (p, _), values = jax.lax.scan(step, (start, method.init(start)), None, length=steps)
        return [np.asarray(leaf) for leaf in p], np.asarray(values)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the network by each method and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of each method (default: %(default)s)")
    parser.add_argument("--points", type=int, default=64, help="points to fit (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights (default: %(default)s)")
    options = parser.parse_args(arguments)
    if min(options.steps, options.points) < 1:
        parser.error("--steps and --points must be positive")
    (x, y), layers = waves(options.points), network([1, 16, 16, 1], options.seed)
    print(f"{'method':18}{'first loss':>14}{'last loss':>14}{'optax':>14}{'parameters differ by':>24}")
    for name, method in METHODS.items():
        params, values = minimize(partial(misfit, tr, tr.asarray(x), tr.asarray(y)), layers, method, options.steps)
        row = f"{name:18}{float(values[0]):14.6e}{float(values[-1]):14.6e}"
        other = with_optax(name, layers, x, y, options.steps)
        if other is None:
            print(f"{row}{'not installed':>14}")
            continue
        apart = max(np.abs(np.asarray(a) - b).max() for a, b in zip(tr.tree_leaves(params), other[0], strict=True))
        print(f"{row}{float(other[1][-1]):14.6e}{apart:24.1e}")


if __name__ == "__main__":
    main()
