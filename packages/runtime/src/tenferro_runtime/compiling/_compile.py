"""`compile`: trace a function once for each kind of arguments, then replay the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from tenferro_runtime.compilers import ProgramCompiler, find_compiler
from tenferro_runtime.compiling._compiled import Compiled
from tenferro_runtime.compiling._compiled_tools import Traced, equip
from tenferro_runtime.compiling._retraces import CacheInfo
from tenferro_runtime.ir._program import Program
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import importing
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime.placement import CostModel, ExecutionPlan
    from tenferro_runtime.reports import BadStep, Explanation, Profile


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class CompiledFunction(ABC, Generic[P, R_co]):
    """A function that `compile` returned.

    Methods take:
        args, kwargs: arguments of the function, which choose the program.
        path: the file to write.

    >>> f = tr.compile(lambda x: x * x)
    >>> f(3.0), f.cache_info().traces
    (Tensor(9.), 1)
    """

    __name__: str
    __wrapped__: Callable[..., Any]

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the program for these arguments; trace it first if there is none."""

    if TYPE_CHECKING:  # as a method of a class

        @overload
        @abstractmethod
        def __get__(self, instance: None, owner: type, /) -> Self: ...
        @overload
        @abstractmethod
        def __get__(
            self: CompiledFunction[Concatenate[Any, Q], R], instance: object, owner: type, /
        ) -> CompiledFunction[Q, R]: ...

    @abstractmethod
    def cache_info(self) -> CacheInfo:
        """The number of traces and cached programs, and the reason of each trace."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all programs."""

    @abstractmethod
    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program for these arguments; traced if there is none, but not run.

        Returns:
            The program.
        """

    @abstractmethod
    def plan(self, *args: Any, **kwargs: Any) -> ExecutionPlan:
        """The plan for these arguments: the thread and device of each step, and what it waits for.

        Returns:
            The plan, which prints as a table.

        Raises:
            ProgramError: sizes depend on data, so that there is no plan; or a compiler runs the program as a whole.
        """

    @abstractmethod
    def save(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Write the program for these arguments to a file, which `load` reads.

        Returns:
            The hash of the content.

        Raises:
            TracingError: the function uses values of an outer transformation.
        """

    @abstractmethod
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Estimate the cost of each step for these arguments.

        Returns:
            The estimate, which prints as a table.
        """

    @abstractmethod
    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Measure the time of each step for these arguments.

        Returns:
            The measured times, which print as a table.

        Raises:
            ProgramError: a compiler runs the program as a whole.
        """

    @abstractmethod
    def draw(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Draw the program for these arguments as a graph, into a file ``.dot``, ``.svg`` or ``.html``.

        Returns:
            The text of the file.
        """

    @abstractmethod
    def find_nan(self, *args: Any, **kwargs: Any) -> BadStep | None:
        """Find the first step that produces a NaN or an infinity for these arguments.

        Returns:
            The step, or ``None`` if all values are finite.
        """


if TYPE_CHECKING:

    class CompileDecorator(Protocol):
        """`compile` with options and without a function."""

        def __call__(self, f: Callable[P, R], /) -> CompiledFunction[P, R]:
            """Compile a function."""


@overload
def compile(f: Callable[P, R], /) -> CompiledFunction[P, R]: ...
@overload
def compile(
    f: None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    donate: int | Iterable[int] = ...,
    deterministic: bool | None = ...,
    placement: str | CostModel | None = ...,
    unroll: bool | int | None = ...,
    backend: str | ProgramCompiler | None = ...,
) -> CompileDecorator: ...
@overload
def compile(
    f: Callable[P, R],
    /,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    donate: int | Iterable[int] = ...,
    deterministic: bool | None = ...,
    placement: str | CostModel | None = ...,
    unroll: bool | int | None = ...,
    backend: str | ProgramCompiler | None = ...,
) -> CompiledFunction[P, R]: ...
@boundary
def compile(
    f: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate: int | Iterable[int] = (),
    deterministic: bool | None = None,
    placement: str | CostModel | None = None,
    unroll: bool | int | None = None,
    backend: str | ProgramCompiler | None = None,
) -> Any:
    """Compile a function: trace it once for each kind of arguments, then replay the program.

    The kind of a call is the structure of its arguments with the number of axes and the dtype of each; sizes are
    symbolic. If the function branches on a size (``if x.shape[0] > 3``, or whether an axis has extent 1), the answer
    becomes a guard of the program, and sizes that violate the guard lead to another program. A function that needs
    concrete sizes is traced for each of them. ``cache_info().reasons`` states the reason of each trace, with the line
    that caused it.

    The function receives traced values, which have a shape and a dtype but no elements; its Python code runs only
    while tracing. Arguments and results are pytrees of arrays. Python numbers among the arguments are weak 0-d arrays,
    so a new number does not cause a new trace. Any other hashable argument (text, a function, a dtype, the object of a
    method) is a constant of the program, as is an unused default unless it is an array. Compiled functions can be
    differentiated, and called while another function is traced.

    Rebinding a global or closure variable causes a new trace; so does assigning to elements of an array in it, or
    making it a differentiated value. Changes inside other objects, and of module attributes, are not noticed.

    Args:
        f: the function; without it, `compile` returns a decorator.
        static_argnums: positions of arguments that are constants of the program, any hashable values.
        static_argnames: names of such arguments.
        donate: positions of arguments whose memory results may reuse. Reading such a tensor after the call raises
            `DonatedError`. Numbers, and calls with differentiated or traced arguments, donate nothing.
        deterministic: whether to run only passes that preserve every bit, so that the compiled function returns the
            same values as its operations one by one, with any number of threads; by default as the runtime says.
        placement: ``"auto"`` moves steps whose operands name no device to open CPU pools if the cost model predicts a
            gain; a `CostModel` of your own does the same; ``plan(...)`` shows the reasons. By default steps stay in the
            calling thread.
        unroll: which Python loops stay unrolled in the program. Many equal groups of steps, each of which continues
            the previous one, are rolled into one loop with bitwise equal results, which compiles faster. True keeps
            all steps; a number keeps loops of up to that many iterations; False rolls every loop that is recognized. By
            default, loops that are short or have few steps stay unrolled.
        backend: the compiler that runs programs, their derivatives and batches as a whole: ``"xla"``,
            ``"xla:<platform>:<i>"``, the name of another installed compiler, or a `ProgramCompiler`. It builds one
            executable for each combination of sizes. By default programs run on the devices of their arguments. When
            compiled functions call each other, the outermost decides.

    Returns:
        A function with the signature of `f` and the methods of `CompiledFunction`.

    Raises:
        DonatedError: an argument was donated by an earlier call.
        ArgumentError: an argument is neither an array, a number, a container of them nor hashable; the result is not a
            tree of arrays; `unroll` is neither a boolean nor a positive integer; or `backend` is combined with
            `placement` or `deterministic`, which it cannot guarantee.
        BackendUnavailableError: no compiler named `backend` is installed, or its device is missing.
        TracingError: the function asked for the elements of a traced value.

    See also: `trace`, which returns the program.

    >>> import tenferro_runtime as tr
    >>> from tenferro_tensor import tensor
    >>> @tr.compile
    ... def f(x, y):
    ...     return {"sum": x + y, "double": 2 * x}
    >>> f(tensor([1.0, 2.0]), 1)
    {'sum': Tensor([2., 3.]), 'double': Tensor([2., 4.])}
    >>> f(tensor([5.0, 6.0]), 3)["sum"], f.cache_info().traces
    (Tensor([8., 9.]), 1)
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    donated = (donate,) if isinstance(donate, int) else tuple(donate)
    if f is None:
        return lambda g: _compile(g, numbers, names, donated, deterministic, placement, unroll, backend)
    return _compile(f, numbers, names, donated, deterministic, placement, unroll, backend)


def _compile(
    f: Any,
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    donated: tuple[int, ...],
    deterministic: bool | None,
    placement: Any,
    unroll: bool | int | None,
    backend: str | ProgramCompiler | None,
) -> Any:
    if not callable(f):
        raise ArgumentError(f"compile takes a function, got {f!r:.80}")
    if placement is not None and not _places(placement):
        raise ArgumentError(
            f"placement={placement!r:.80} is not a placement; pass 'auto' or a CostModel, or leave it out",
            placement=placement,
        )
    if unroll is not None and not (isinstance(unroll, bool) or (isinstance(unroll, int) and unroll >= 1)):
        raise ArgumentError(
            "compile keeps Python loops unrolled (unroll=True), rolls them (False), or keeps those of up to a positive "
            f"number of iterations, got {unroll=}; leave it out to let their length decide"
        )
    compiler = None if backend is None else find_compiler(backend)
    if compiler is not None and (deterministic or placement is not None):
        raise ArgumentError(
            f"{compiler.name} runs a program as a whole, and guarantees neither the bits of single steps "
            f"({deterministic=}) nor a device for each of them ({placement=}); leave these out, or leave backend= out"
        )
    state = Compiled(f, numbers, names, donated, deterministic, placement, unroll, compiler)
    entry: Any = state.entry

    def traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        here = state.scoped()
        signature = here.signature
        dynamic, static = signature.split((args, kwargs) if signature.names is None else _given(entry, args, kwargs))
        leaves, treedef, constants = here.flattened(dynamic)
        found = here.find(static, leaves, treedef, constants)
        form = found.form
        names = signature.names and tuple([n for n in signature.names if n not in signature.static_names])
        return Traced(state.title, names, form.program, treedef, form.tree, form.fixed, found.leaves, found.captured,
                      signature.given_leaves(treedef))  # fmt: skip

    entry.cache_info, entry.clear = state.info, state.clear
    equip(entry, traced)
    return entry


def _given(entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a method of a compiled function, which inspects the program for them."""
    try:
        return entry.parameters(args, kwargs)
    except TypeError as cause:
        raise TypeError(
            f"{cause}; save, explain, draw, program and others take arguments of the function (save and draw after the "
            "path), which choose the program, as in compile(f).save(path, x)"
        ) from None


def _places(placement: Any) -> bool:
    with importing():  # only programs on several devices need it
        from tenferro_runtime.placement import CostModel
    return isinstance(placement, CostModel) or (isinstance(placement, str) and placement == "auto")
