"""The test suites of other projects, and how each takes one more array library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Suite:
    """One project's tests.

    Attributes:
        name: the project.
        tests: what pytest collects: importable packages, or paths below the source archive.
        archive: the distribution whose source archive holds the tests; none if the wheel has them.
        needs: distributions that the environment of this workspace lacks, installed without their dependencies.
        peers: the libraries that run beside tenferro.
        options: options of pytest.
        environment: variables of the environment.
    """

    name: str
    tests: tuple[str, ...]
    archive: str = ""
    needs: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("numpy", "torch")
    options: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


def _scipy(part: str) -> Suite:
    return Suite(
        f"scipy.{part}",
        (f"scipy.{part}",),
        peers=("numpy", "torch", "jax.numpy"),
        options=("--pyargs", "-m", "array_api_backends and not slow and not xslow"),
        environment=(("SCIPY_ARRAY_API", '["{backend}"]'),),
    )


def _einops(name: str) -> str:
    return f"einops/tests/test_{name}.py"


def _quimb(name: str) -> str:
    return f"tests/test_tensor/test_{name}.py"


_SKLEARN: Final = (
    "sklearn._loss.tests.test_link",
    "sklearn._loss.tests.test_loss",
    "sklearn.decomposition.tests.test_pca",
    "sklearn.linear_model._glm.tests.test_glm",
    "sklearn.linear_model.tests.test_logistic",
    "sklearn.linear_model.tests.test_ridge",
    "sklearn.metrics.cluster.tests.test_supervised",
    "sklearn.metrics.tests.test_classification",
    "sklearn.metrics.tests.test_common",
    "sklearn.metrics.tests.test_pairwise",
    "sklearn.mixture.tests.test_gaussian_mixture",
    "sklearn.model_selection.tests.test_search",
    "sklearn.model_selection.tests.test_split",
    "sklearn.model_selection.tests.test_validation",
    "sklearn.preprocessing.tests.test_data",
    "sklearn.preprocessing.tests.test_label",
    "sklearn.preprocessing.tests.test_polynomial",
    "sklearn.tests.test_calibration",
    "sklearn.tests.test_kernel_approximation",
    "sklearn.tests.test_naive_bayes",
    "sklearn.tests.test_pipeline",
    "sklearn.utils.tests.test_array_api",
    "sklearn.utils.tests.test_extmath",
    "sklearn.utils.tests.test_indexing",
    "sklearn.utils.tests.test_multiclass",
    "sklearn.utils.tests.test_optimize",
    "sklearn.utils.tests.test_stats",
    "sklearn.utils.tests.test_validation",
)

SCIPY: Final = (
    "cluster",
    "differentiate",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "spatial",
    "special",
    "stats",
)

SUITES: Final = (
    *map(_scipy, SCIPY),
    Suite("sklearn", _SKLEARN, options=("--pyargs",), environment=(("SCIPY_ARRAY_API", "1"),)),
    Suite("symmray", ("tests/test_sparse", "tests/test_einsum_interface.py"), "symmray"),
    Suite(
        "quimb",
        ("tests/test_tensor/test_decomp.py", "tests/test_tensor/test_optimizers.py"),
        "quimb",
        peers=("numpy", "torch", "jax"),
    ),
    Suite(
        "quimb.converted",
        tuple(map(_quimb, ("tensor_core", "contract", "gating", "fitting", "tensor_builder", "tn1d/test_core"))),
        "quimb",
        needs=("networkx==3.5",),
        peers=("numpy", "jax"),
    ),
    Suite(
        "einops",
        tuple(map(_einops, ("ops", "einsum", "packing", "other"))),
        "einops",
        peers=("numpy",),
        environment=(("EINOPS_TEST_BACKENDS", "{backend}"),),
    ),
    Suite("autograd", ("tests",), "autograd", peers=("numpy",), environment=(("SCIPY_ARRAY_API", "1"),)),
)

OWN: Final = "tenferro_runtime"
"""The name of the namespace, under which the suites know this library."""
