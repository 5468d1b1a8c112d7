"""`python3 -m tenferro_runtime.extension new NAME`: writes the package of an extension, whose tests pass.

The texts below are that package under the name of ``my-ops``.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Final

from tenferro_tensor.entry_points import EXTENSIONS, installed
from tenferro_tensor_core import ArgumentError

PROJECT: Final = """\
[build-system]
requires = ["uv_build>=0.9,<1"]
build-backend = "uv_build"

[project]
name = "my-ops"
version = "0.1.0"
description = "Operations for tenferro"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["tenferro-runtime>=0.1,<0.2"]

[project.optional-dependencies]
test = ["pytest", "tenferro-ad>=0.1,<0.2"]

[project.entry-points."tenferro.extensions"]
my-ops = "my_ops:register"
"""

MODULE: Final = '''\
"""Operations for tenferro."""

from tenferro_runtime.extension import Registry, Slopes, Spec, catalog, primitive

__all__ = ["gaussian"]


@primitive(
    elementwise=True,
    domain="floating",
    family="my-ops.gaussian.v1",
    extension="my-ops",
)
def gaussian(x: Spec) -> Spec:
    """exp(-x^2 / 2), element by element. Called with specs, and returns that of the result."""
    return x


def register(registry: Registry) -> None:
    """Say what an operation computes, and its derivative; called when one is first needed."""
    registry.expansion(gaussian, lambda x: catalog.exp(x * x * -0.5))
    registry.rule(gaussian, Slopes(x=lambda x, out: -x * out))
'''

TEST: Final = '''\
"""Operations agree with NumPy, and fit into everything that tenferro does with them."""

import numpy as np
import tenferro_runtime as tr
from tenferro_ad import check_primitive

from my_ops import gaussian

x = np.linspace(-1.0, 1.0, 6).reshape(2, 3)


def test_gaussian_has_its_values() -> None:
    np.testing.assert_allclose(np.asarray(gaussian(x)), np.exp(-(x**2) / 2))


def test_gaussian_is_a_sound_primitive() -> None:
    check_primitive(gaussian, tr.asarray(x))
'''

README: Final = """\
# my-ops

Operations for tenferro.

```python
import tenferro_runtime as tr
from my_ops import gaussian

tr.grad(gaussian)(0.5)
```

## Make it yours

1. `pip install -e '.[test]'`, then `pytest`. Install again after a change of the entry point in `pyproject.toml`.
2. Replace `gaussian` in `src/my_ops/__init__.py`. Operands are positional, settings are keywords. Its *expansion*,
   written with other operations, runs on every device; `registry.kernel(op, "cpu", make)` registers code of your own
   instead.
3. Add a line with `check_primitive` to the tests for each operation. It lists all mistakes, with remedies.
4. Choose a licence, add `license` and `authors` to `pyproject.toml`, and publish with `uv build` and `uv publish`.

The number in `my-ops.gaussian.v1` is that of the operation: files with saved programs refer to it. Raise it when the
operation means something else.
"""


def new(name: str, into: Path) -> Path:
    """Write a package with one operation.

    Args:
        name: name of the distribution, of its folder and, with underscores, of its module.
        into: the folder that gets it.

    Returns:
        The folder of the package.

    Raises:
        ArgumentError: the name is not one of a distribution, or is taken.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = new("wave-ops", Path(folder))
    ...     sorted(path.name for path in written.rglob("*.*"))
    ['README.md', '__init__.py', 'pyproject.toml', 'test_wave_ops.py']
    """
    module = name.replace("-", "_")
    folder = into / name
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or not _is_free_word(module):
        raise ArgumentError(
            f"{name!r} is no name for an extension; take lower-case words and digits with single hyphens between them, "
            "no keyword of Python, and not tenferro's own prefix: my-ops"
        )
    if find_spec(module) is not None or name in installed(EXTENSIONS):
        raise ArgumentError(f"{name!r} is taken: a module {module} or an extension {name} is installed; choose another")
    if folder.exists():
        raise ArgumentError(f"{folder} exists already; choose another name or another folder")
    texts = {
        "pyproject.toml": PROJECT,
        "README.md": README,
        f"src/{module}/__init__.py": MODULE,
        f"tests/test_{module}.py": TEST,
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace("my-ops", name).replace("my_ops", module), encoding="utf-8")
    return folder


def _is_free_word(module: str) -> bool:
    return not iskeyword(module) and module != "tenferro" and not module.startswith("tenferro_")


def main() -> None:
    """Run the command line."""
    parser = ArgumentParser(
        prog="python3 -m tenferro_runtime.extension", description="Tools for authors of extensions."
    )
    command = parser.add_subparsers(required=True).add_parser("new", help="write a package whose tests pass")
    command.add_argument("name", help="name of the distribution, such as my-ops")
    command.add_argument("--into", type=Path, default=Path(), help="the folder that gets it; by default this one")
    given = parser.parse_args()
    try:
        folder = new(given.name, given.into)
    except ArgumentError as error:
        parser.error(str(error))
    print(f"wrote {folder}; next: cd {folder} && pip install -e '.[test]' && pytest")
