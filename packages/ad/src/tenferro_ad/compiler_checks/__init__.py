"""`check_compiler`: checks a compiler of whole programs on many small ones.

- `_checked`: the compiler, whose executables are watched in every call
- `_programs`: programs and their arguments
- `_checks`: the checks of results
- `_conduct`: the checks of effects, guards, threads and errors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tenferro_ad.compiler_checks import _checks, _conduct
from tenferro_ad.compiler_checks._checked import CheckedCompiler
from tenferro_runtime.compilers import ProgramCompiler, find_compiler
from tenferro_tensor.checking import CheckReport, run_checks

__all__ = ["check_compiler"]


def __dir__() -> list[str]:
    return __all__.copy()


def check_compiler(compiler: str | ProgramCompiler, *, device: str = "cpu", skip: Sequence[str] = ()) -> CheckReport:
    """Check a compiler of whole programs, for its author: what it compiles must do what single operations do.

    The checks, by name:

    - ``results``: number, shapes, dtypes and values of results: none, several, equal ones, constants, arguments
    - ``dtypes``: floating-point, complex, integer and boolean numbers
    - ``repeatable``: equal calls return equal bits, and no call changes a result of another
    - ``layouts``: strided, reversed, broadcast, column-major and read-only arguments
    - ``shared arguments``: one array as two arguments, and views of one array
    - ``donated memory``: results are right where they may take the memory of arguments
    - ``sizes``: one compiled function for several sizes, 0 and 1 among them
    - ``control flow``: branches and loops, nested and with several values
    - ``derivatives``: gradients and Hessian products of compiled functions, loops included
    - ``batches``: compiled functions under vmap
    - ``effects``: debug callbacks take place in order, in loops and branches too, and if nobody reads their results
    - ``guards``: functions that do something else at other sizes
    - ``threads``: one executable in several threads at once
    - ``errors``: a step that no compiler knows is refused, with its line, or run, and its failure is the caller's error

    In all of them an executable may write only to donated arguments, and return no memory that it borrows. A program
    that the compiler refuses with an `UnsupportedError` is passed over; a check of which it refuses all programs is
    left out.

    Args:
        compiler: the compiler, or its name as for ``compile(f, backend=...)``.
        device: where the arguments are.
        skip: names of checks to leave out.

    Returns:
        The report, with the outcome of each check.

    Raises:
        CheckError: a check failed; the message lists all mistakes and how to correct each.
        ArgumentError: `skip` names an unknown check, or `compiler` is none.

    See also:
        check_primitive: checks the registrations of one operation.

    >>> from tenferro_ad import check_compiler
    >>> from tenferro_runtime.compilers import ProgramCompiler
    >>> from tenferro_tensor.checking import CheckError
    >>> class Forgetful(ProgramCompiler):
    ...     name = "forgetful"
    ...     def executable(self, program, donated):
    ...         return lambda *raws: raws[:1]
    >>> try:
    ...     check_compiler(Forgetful())
    ... except CheckError as error:
    ...     len(error.report.failed) > 5
    True
    """
    subject = CheckedCompiler(find_compiler(compiler), device)
    checks: dict[str, Callable[[CheckedCompiler], Iterator[str]]] = {
        "results": _checks.results,
        "dtypes": _checks.dtypes,
        "repeatable": _checks.repeatable,
        "layouts": _checks.layouts,
        "shared arguments": _checks.shared_arguments,
        "donated memory": _checks.donated_memory,
        "sizes": _checks.sizes,
        "control flow": _checks.control_flow,
        "derivatives": _checks.derivatives,
        "batches": _checks.batches,
        "effects": _conduct.effects,
        "guards": _conduct.guards,
        "threads": _conduct.threads,
        "errors": _conduct.errors,
    }
    return run_checks("check_compiler", f"the compiler {subject.compiler.name!r}", checks, subject, skip)
