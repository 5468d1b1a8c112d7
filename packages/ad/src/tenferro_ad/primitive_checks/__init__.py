"""`check_primitive`: everything that tenferro expects of a primitive, checked on examples.

- `_subject`: the op, its operands, and operands of other sizes and dtypes
- `_results`: inference and kernel
- `_modes`: the ways to run an op, files, expansions, prunings, costs, lowerings
- `_derivatives`: the rule
- `_report`: what is found
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tenferro_ad.primitive_checks import _derivatives, _modes, _results
from tenferro_ad.primitive_checks._report import Finding, LeftOut, PrimitiveError, PrimitiveReport
from tenferro_ad.primitive_checks._subject import Subject
from tenferro_tensor import Op, Primitive
from tenferro_tensor_core import ArgumentError, TenferroError

__all__ = ["Finding", "PrimitiveError", "PrimitiveReport", "check_primitive"]


def check_primitive(
    op: Op | Primitive,
    *operands: Any,
    order: int = 2,
    executor: Callable[..., Any] | None = None,
    skip: Sequence[str] = (),
) -> PrimitiveReport:
    """Check a primitive on an example: what the authors of a plug-in would otherwise find out one by one.

    The checks, by name:

    - ``operands unchanged``: the kernel does not write to its operands; in use these are read-only
    - ``results``: shapes, dtypes and classes of the results are those of the inference
    - ``repeatable``: equal calls give equal bits, and results share no memory between calls
    - ``layouts``: strided, reversed, broadcast, column-major and read-only operands
    - ``sizes``: inference with symbolic sizes
    - ``empty``: extents of 0 give a result or a typed error
    - ``dtypes``: every dtype that the inference admits
    - ``modes``: recorded, traced, compiled at this size and at others, deterministic
    - ``batches``: under vmap, with lanes in all operands and in each alone
    - ``derivatives``: the rule against differences, reverse against forward mode, to `order`, in every mode, in single
      and double precision, real and complex, as far as the inference admits them
    - ``files``: a program with the op, saved and loaded
    - ``expansion``, ``pruning``, ``costs``, ``lowering``: where they are registered

    Checks that do not apply are left out, and the report says why.

    Args:
        op: the primitive, or an op with its metadata, ``primitive.op(axis=0)``.
        operands: arrays or numbers, at a point where the primitive is smooth. Prefer two or more extents beyond 1, all
            different.
        order: highest order of derivatives.
        executor: runs a traced program on operands, as ``tenferro_xla.XlaExecutor().run`` does; checks the lowering.
        skip: names of checks to leave out.

    Raises:
        PrimitiveError: some checks failed; the text lists all mistakes and what to do about each.
        ArgumentError: the operands are no example for the primitive, or a name in `skip` is none of a check.

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
    unknown = sorted(set(skip) - set(checks))
    if unknown:
        raise ArgumentError(f"check_primitive has no check {', '.join(unknown)}; it has {', '.join(checks)}")
    findings: list[Finding] = []
    for name, check in checks.items():
        if findings and findings[0].mistakes:  # every call would say the same again
            findings.append(Finding(name, left_out="the kernel writes to its operands; correct that first"))
        else:
            findings.append(_made(name, check, subject, skip))
    report = PrimitiveReport(repr(subject.op), tuple(findings))
    if report.failed:
        raise PrimitiveError(report)
    return report


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
            f"the operands are no example for {op!r}, since its inference refuses them: {error}; give operands that it "
            "takes"
        ) from error
    return subject


def _made(name: str, check: Callable[[Subject], Iterator[str]], subject: Subject, skip: Sequence[str]) -> Finding:
    if name in skip:
        return Finding(name, left_out="skipped on request")
    try:
        return Finding(name, tuple(check(subject)))
    except LeftOut as reason:
        return Finding(name, left_out=str(reason))
    except Exception as error:
        return Finding(name, (f"{type(error).__name__}: {error}",))
