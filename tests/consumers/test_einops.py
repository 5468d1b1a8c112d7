"""einops on tensors: its main functions, by the backend that is registered with it, and its array API module."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import einops
import einops.array_api
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, variable

IMAGES = np.random.default_rng(1).normal(size=(4, 6, 8, 3))

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda e, x: e.rearrange(x, "b h w c -> b c h w"),
    "compose": lambda e, x: e.rearrange(x, "b h w c -> (b h) (c w)"),
    "decompose": lambda e, x: e.rearrange(x, "(b1 b2) h w c -> (b1 h) (b2 w) c", b1=2),
    "space to depth": lambda e, x: e.rearrange(x, "b (h h2) (w w2) c -> b h w (c h2 w2)", h2=2, w2=2),
    "unit axes": lambda e, x: e.rearrange(x, "b h w c -> b 1 (h w) c 1"),
    "ellipsis": lambda e, x: e.rearrange(x, "b ... c -> c ... b"),
    "mean": lambda e, x: e.reduce(x, "b h w c -> b c", "mean"),
    "pooling": lambda e, x: e.reduce(x, "b (h h2) (w w2) c -> h w c", "max", h2=2, w2=4),
    "sum": lambda e, x: e.reduce(x, "b h w c -> ", "sum"),
    "function": lambda e, x: e.reduce(x, "b h w c -> h w", lambda y, axes: (y * y).sum(axes)),
    "repeat": lambda e, x: e.repeat(x, "b h w c -> b (h r) (w s) c", r=2, s=3),
    "new axis": lambda e, x: e.repeat(x, "b h w c -> n b h w c k", n=2, k=3),
    "list": lambda e, x: e.rearrange([x[0], x[1]], "b h w c -> h (b w) c"),
    "pack": lambda e, x: e.pack([x[:, :, 0], x[:, :, :2, 0], x[:, :, 1]], "b h *")[0],
    "unpack": lambda e, x: e.unpack(e.rearrange(x, "b h w c -> b (h w c)"), [(3, 2), (), (137,)], "b *")[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_on_every_kind_of_value(name: str) -> None:
    call, x = CALLS[name], tr.asarray(IMAGES)
    expected = call(einops, IMAGES)
    for module in (einops, einops.array_api):
        concrete = call(module, x)
        assert type(concrete) is tr.Tensor
        np.testing.assert_allclose(np.asarray(concrete), expected)
        np.testing.assert_allclose(np.asarray(tr.compile(lambda x, m=module: call(m, x))(x)), expected)
    recorded = call(einops, variable(IMAGES))
    assert isinstance(recorded, EagerTensor) and recorded.requires_grad
    np.testing.assert_allclose(np.asarray(recorded.detach()), expected)


def test_einsum_is_the_contraction_of_the_namespace_with_its_gradient() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 4))
    np.testing.assert_allclose(
        np.asarray(einops.einsum(tr.asarray(x), tr.asarray(x), "batch i k, batch j k -> batch i j")),
        x @ x.swapaxes(1, 2),
    )
    slope = grad(lambda x: einops.einsum(x, x, "b i k, b i k -> "))
    np.testing.assert_allclose(np.asarray(slope(tr.asarray(x))), 2 * x)


def test_gradients_and_lanes_pass() -> None:
    weights = np.random.default_rng(2).normal(size=(4, 3))

    def loss(x: Any) -> Any:
        return tr.sum(einops.reduce(x * x, "b (h h2) w c -> b c", "mean", h2=2) * weights)

    expected = 2 * IMAGES * weights[:, None, None] / 48
    for of in (grad(loss), tr.compile(grad(loss))):
        np.testing.assert_allclose(np.asarray(of(tr.asarray(IMAGES))), expected)
    lanes = tr.vmap(lambda x: einops.rearrange(x, "h w c -> c (h w)"))(tr.asarray(IMAGES))
    np.testing.assert_array_equal(np.asarray(lanes), einops.rearrange(IMAGES, "b h w c -> b c (h w)"))


def test_one_program_serves_all_sizes() -> None:
    pooled = tr.compile(lambda x: einops.reduce(x, "b (h h2) c -> (b h) c", "sum", h2=2))
    for shape in ((2, 4, 3), (5, 6, 2), (3, 8, 7)):
        x = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_allclose(
            np.asarray(pooled(tr.asarray(x))), einops.reduce(x, "b (h h2) c -> (b h) c", "sum", h2=2)
        )
    assert pooled.cache_info().traces == 1


@pytest.mark.parametrize("lines", ["import einops, tenferro_runtime as tr", "import tenferro_runtime as tr, einops"])
def test_einops_knows_tensors_whichever_is_imported_first(lines: str) -> None:
    code = (
        f"{lines}\nimport inspect\nprint(einops.rearrange(tr.ones((2, 3)), 'a b -> b a').shape)\n"
        "assert einops.__loader__ is einops.__spec__.loader and inspect.getsource(einops)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(3, 2)\n"
