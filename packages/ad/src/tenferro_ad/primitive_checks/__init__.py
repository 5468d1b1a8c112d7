"""`check_primitive`: checks every contract of a primitive on an example.

- `_subject`: the op, its operands, and operands of other sizes and dtypes
- `_results`: inference and kernel
- `_modes`: the ways to run an op, files, expansions, prunings, costs, lowerings
- `_derivatives`: the derivative rule
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tenferro_ad.primitive_checks import _derivatives, _modes, _results
from tenferro_ad.primitive_checks._subject import Subject
from tenferro_tensor import Op, Primitive
from tenferro_tensor.checking import CheckReport, run_checks
from tenferro_tensor_core import ArgumentError, TenferroError

__all__ = ["check_primitive"]


def __dir__() -> list[str]:
    return __all__.copy()


def check_primitive(
    op: Op | Primitive,
    *operands: Any,
    order: int = 2,
    executor: Callable[..., Any] | None = None,
    skip: Sequence[str] = (),
) -> CheckReport:
    """Check all contracts of a primitive on an example, for authors of extensions.

    The checks, by name:

    - ``operands unchanged``: the kernel does not write to its operands
    - ``results``: shapes, dtypes and classes of the results match the inference
    - ``repeatable``: equal calls return equal bits, and results share no memory between calls
    - ``layouts``: strided, reversed, broadcast, column-major and read-only operands
    - ``sizes``: inference with symbolic sizes
    - ``empty``: operands without elements lead to a result or a typed error
    - ``dtypes``: every dtype that the inference admits
    - ``modes``: recorded, traced, compiled for this size and others, deterministic
    - ``batches``: under vmap, with lanes in all operands and in each alone
    - ``derivatives``: forward mode against differences, reverse against forward mode, up to `order`, plain and
      compiled, in single and double precision, real and complex, as far as the inference admits them
    - ``power series``: Taylor mode against nested forward mode
    - ``files``: a program with the op, saved and loaded
    - ``expansion``, ``pruning``, ``costs``, ``lowering``: if registered

    Checks that do not apply are left out, and the report says why.

    Args:
        op: the primitive, or an op with its metadata, ``primitive.op(axis=0)``.
        operands: arrays or numbers, at a point where the primitive is smooth; preferably with two or more different
            sizes above 1.
        order: highest order of derivatives.
        executor: runs a traced program on operands, like ``tenferro_xla.XlaExecutor().run``; needed to check the
            lowering.
        skip: names of checks to leave out.

    Returns:
        The report, with the outcome of each check.

    Raises:
        CheckError: a check failed; the message lists all mistakes and how to correct each.
        ArgumentError: `op` is not a primitive, its inference refuses the operands, or `skip` names an unknown check.

    See also:
        check_compiler: checks a compiler of whole programs.
        check_grads: checks the derivatives of any function.

    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import check_primitive
    >>> from tenferro_runtime.extension import catalog
    >>> report = check_primitive(catalog.tanh, tr.linspace(-1.0, 1.0, 5))
    >>> [f.check for f in report.findings if f.outcome == "left out"]
    ['expansion', 'pruning', 'costs', 'lowering']
    """
    subject = _subject(op, operands)
    checks: dict[str, Callable[[Subject], Iterator[str]]] = {
        "operands unchanged": _results.operands_unchanged,
        "results": _results.results,
        "repeatable": _results.repeatable,
        "layouts": _results.layouts,
        "sizes": _results.sizes,
        "empty": _results.empty,
        "dtypes": _results.dtypes,
        "modes": _modes.modes,
        "batches": _modes.batches,
        "derivatives": partial(_derivatives.derivatives, order=order),
        "power series": _derivatives.power_series,
        "files": _modes.files,
        "expansion": _modes.expansion,
        "pruning": _modes.pruning,
        "costs": _modes.costs,
        "lowering": partial(_modes.lowering, executor=executor),
    }
    first = "the kernel writes to its operands; correct that first"
    return run_checks("check_primitive", repr(subject.op), checks, subject, skip, first=first)


def _subject(op: Any, operands: tuple[Any, ...]) -> Subject:
    if isinstance(op, Primitive):
        op = op.op()
    if not isinstance(op, Op):
        raise ArgumentError(f"check_primitive takes a primitive, or an op of one, got {op!r:.80}")
    subject = Subject(op, operands)
    try:
        op.infer(*subject.specs)
    except TenferroError as error:
        raise ArgumentError(
            f"the operands are not an example of {op!r}, since its inference refuses them: {error}; pass operands that "
            "it takes"
        ) from error
    return subject
