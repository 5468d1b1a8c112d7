"""Applications of automatic differentiation as users write them, each once for tenferro and for JAX.

The problems are those that suites of differentiation tools share (ADBench of F. Srajer et al., 2018; the nested
optimisations of B. A. Pearlmutter and J. M. Siskind, 2008); the code is written from the mathematics.
"""

from __future__ import annotations

from importlib import import_module

from ad_applications.record import Application

FAMILIES = ("estimation", "vision", "networks", "dynamics", "nested")


def every() -> dict[str, Application]:
    """All applications by name."""
    found = [a for family in FAMILIES for a in import_module(f"ad_applications.{family}").APPLICATIONS]
    return {a.name: a for a in found}
