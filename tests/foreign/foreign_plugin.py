"""A pytest plugin that runs a suite of another project with one array library, ``FOREIGN_BACKEND``.

It replaces the list of libraries that a suite tries, each in the way of the project, and writes the outcome of every
test to the file ``FOREIGN_REPORT``.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BACKEND = os.environ.get("FOREIGN_BACKEND", "tenferro_runtime")
SUITE = os.environ.get("FOREIGN_SUITE", "")
OWN = "tenferro_runtime"

_outcomes: dict[str, tuple[str, str]] = {}


class _Refusing:
    """A finder for libraries that are not tried: SciPy's tests import all that they find, which takes seconds."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in {"array_api_strict", "cupy", "dask", "jax", "torch"} - {BACKEND.partition(".")[0]}:
            raise ModuleNotFoundError(f"{name} is not tried", name=name)


if SUITE.startswith("scipy"):
    sys.meta_path.insert(0, _Refusing())


def pytest_configure(config: pytest.Config) -> None:
    if SUITE == "sklearn":
        tried: Any = import_module("sklearn.utils._array_api")
        device = "cpu" if BACKEND == "torch" else None
        dtype = "float64" if BACKEND == "torch" else None
        tried.yield_namespaces = lambda include_numpy_namespaces=True: iter([BACKEND])
        tried.yield_namespace_device_dtype_combinations = lambda include_numpy_namespaces=True: iter(
            [(BACKEND, device, dtype)]
        )
    if SUITE == "quimb" and BACKEND == OWN:
        import_module(OWN)
        handlers = import_module("quimb.tensor.optimize")._BACKEND_HANDLERS
        handlers[OWN] = handlers["tenferro"]
    if SUITE == "quimb.converted" and BACKEND != "numpy":
        _convert_networks()
    if SUITE == "symmray" and BACKEND != "numpy":
        _fill_blocks()
    if SUITE == "einops" and BACKEND == OWN:
        import_module("tenferro_runtime")
        _try_in_einops(import_module("einops._backends"))
    if SUITE == "autograd" and BACKEND == OWN:
        import_module("foreign_autograd").install()


def _convert_networks() -> None:
    """The numbers of every tensor of quimb in the other library."""
    if BACKEND == "jax":
        import_module("jax").config.update("jax_enable_x64", True)
    convert = import_module({"jax": "jax.numpy"}.get(BACKEND, BACKEND)).asarray
    tensor: Any = import_module("quimb.tensor").Tensor
    keep = tensor._set_data

    def _set_data(self: Any, data: Any) -> None:
        keep(self, convert(data) if isinstance(data, np.ndarray) and data.dtype.kind in "fc" else data)

    tensor._set_data = _set_data


def _fill_blocks() -> None:
    """Random blocks of symmray in the other library."""
    utils: Any = import_module("symmray.utils")
    convert = import_module(BACKEND).asarray
    fill = utils.get_random_fill_fn

    def get_random_fill_fn(*args: Any, **options: Any) -> Any:
        made = fill(*args, **options)
        return lambda shape: convert(made(shape))

    utils.get_random_fill_fn = get_random_fill_fn


def _try_in_einops(backends: Any) -> None:
    """The backend that is registered, in place of NumPy's in the list of those to test."""
    own = next(b for b in backends.AbstractBackend.__subclasses__() if b.framework_name == OWN)
    backends.NumpyBackend = own


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if SUITE.startswith("scipy") and BACKEND == OWN:
        mark = pytest.mark.array_api_backends
        import_module("scipy.conftest").xp_known_backends.add(OWN)  # so that tests for NumPy alone are skipped
        for fixture in metafunc._arg2fixturedefs.get("xp", ()):
            fixture.params = (pytest.param(import_module(OWN), id=OWN, marks=mark),)  # type: ignore[misc]
    if SUITE == "quimb":
        for found in metafunc.definition.iter_markers("parametrize"):
            if found.args[0] == "backend" and isinstance(found.args[1], list) and len(found.args[1]) > 1:
                found.args[1][:] = [BACKEND]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SUITE not in ("quimb", "sklearn"):
        return
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        values = getattr(item, "callspec", None)
        (kept if values is not None and BACKEND in map(str, values.params.values()) else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    file, _, test = report.location
    name = f"{Path(file).name}::{test}"
    known = _outcomes.get(name)
    if report.outcome == "failed" or (report.when == "call" and known is None):
        outcome = "xfailed" if report.outcome == "skipped" and hasattr(report, "wasxfail") else report.outcome
        _outcomes[name] = outcome, _reason(report)
    elif report.outcome == "skipped" and known is None:
        _outcomes[name] = "skipped", ""


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return "" if crash is None else str(crash.message).partition("\n")[0][:300]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _outcomes[report.nodeid] = "failed", str(report.longrepr)[-300:]


def pytest_sessionfinish() -> None:
    path = os.environ.get("FOREIGN_REPORT")
    if path:
        Path(path).write_text(json.dumps(_outcomes, indent=0), encoding="utf-8")
