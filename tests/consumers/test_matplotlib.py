"""matplotlib draws tensors, and looks at values that are differentiated as printing does."""

import io
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, variable
from tenferro_tensor_core import GradientError, TracingError

V = np.arange(1.0, 7.0)
IMAGE = np.random.default_rng(0).normal(size=(4, 6))

DRAWINGS: dict[str, Any] = {
    "plot": lambda ax, v, m: [ax.plot(v, v * v), ax.plot(v), ax.plot(V, v), ax.plot(m)],
    "scatter": lambda ax, v, m: ax.scatter(v, v, c=v, s=v),
    "imshow": lambda ax, v, m: [ax.imshow(m), ax.matshow(m)],
    "pcolormesh": lambda ax, v, m: ax.pcolormesh(m),
    "contour": lambda ax, v, m: [ax.contour(m), ax.contourf(v, v[:4], m)],
    "hist": lambda ax, v, m: [ax.hist(v), ax.hist2d(v, v)],
    "bar": lambda ax, v, m: [ax.bar(v, v), ax.stem(v, v), ax.step(v, v)],
    "errorbar": lambda ax, v, m: [ax.errorbar(v, v, yerr=abs(v)), ax.fill_between(v, v, v * 2), ax.stackplot(v, v, v)],
    "lines": lambda ax, v, m: [ax.axhline(v[0]), ax.vlines(v, 0, 1), ax.set_xlim(v[0], v[-1])],
    "boxplot": lambda ax, v, m: ax.boxplot(v),
    "quiver": lambda ax, v, m: [ax.quiver(v, v, v, v), ax.text(v[0], v[1], "here")],
}
KINDS: dict[str, Any] = {"concrete": tr.asarray, "variable": variable, "computed": lambda a: variable(a) * 1.0}


@pytest.mark.parametrize("kind", KINDS)
def test_drawings(kind: str) -> None:
    make = KINDS[kind]
    figure, axes = plt.subplots(3, 4)
    for draw, ax in zip(DRAWINGS.values(), axes.flat, strict=False):
        draw(ax, make(V), make(IMAGE))
    figure.savefig(io.BytesIO(), dpi=20)
    plt.close(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_what_the_tensor_holds(kind: str) -> None:
    figure, ax = plt.subplots()
    (line,) = ax.plot(KINDS[kind](V), KINDS[kind](V**2))
    np.testing.assert_array_equal(np.asarray(line.get_xydata()), np.stack([V, V**2], axis=1))
    np.testing.assert_array_equal(ax.imshow(KINDS[kind](IMAGE)).get_array(), IMAGE)
    plt.close(figure)


def test_values_that_are_being_differentiated_or_recorded_are_not_drawn() -> None:
    figure, ax = plt.subplots()

    def loss(v: Any) -> Any:
        ax.scatter(v, v)
        return tr.sum(v)

    with pytest.raises(GradientError, match="detach"):
        grad(loss)(V)
    with pytest.raises(TracingError, match="NumPy array"):
        tr.compile(loss)(V)
    with pytest.raises(GradientError, match="detach"):
        np.asarray(variable(V))
    plt.close(figure)
