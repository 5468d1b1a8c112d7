"""`compile`: a function traced once for each kind of arguments, then replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, overload

from tenferro_runtime.compilers import ProgramCompiler, find_compiler
from tenferro_runtime.compiling._compiled import Compiled
from tenferro_runtime.compiling._compiled_tools import Traced, equip
from tenferro_runtime.compiling._retraces import CacheInfo
from tenferro_runtime.ir._program import Program
from tenferro_tensor_core import ArgumentError
from tenferro_tensor_core.forks import importing

if TYPE_CHECKING:
    from tenferro_runtime.executing import CostModel, ExecutionPlan
    from tenferro_runtime.reports import BadStep, Explanation, Profile


class CompiledFunction(Protocol):
    """A function that `compile` made."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments, tracing it first where there is none."""

    def cache_info(self) -> CacheInfo:
        """Traces, sizes and the reason of each retrace."""

    def clear(self) -> None:
        """Forget all programs."""

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program that these arguments are run with; traced where there is none, but not run."""

    def plan(self, *args: Any, **kwargs: Any) -> ExecutionPlan:
        """What is done where for these arguments, and who waits for whom; prints as a table.

        Raises:
            ProgramError: sizes depend on data, so that steps run one after the other without a plan; or a compiler runs
                the program as a whole.
        """

    def save(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Write the program for these arguments to a file; `load` gives a function of the same trees."""

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What each step of the program costs for these arguments."""

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """The time that each step takes for these arguments, measured.

        Raises:
            ProgramError: a compiler runs the program as a whole.
        """

    def draw(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Write the program for these arguments as a graph, to a file ``.dot``, ``.svg`` or ``.html``."""

    def find_nan(self, *args: Any, **kwargs: Any) -> BadStep | None:
        """The first step that makes a NaN or an infinity of these arguments."""


@overload
def compile(f: Callable[..., Any], /) -> CompiledFunction: ...
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
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
@overload
def compile(
    f: Callable[..., Any],
    /,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    donate: int | Iterable[int] = ...,
    deterministic: bool | None = ...,
    placement: str | CostModel | None = ...,
    unroll: bool | int | None = ...,
    backend: str | ProgramCompiler | None = ...,
) -> CompiledFunction: ...
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
    """Make a function that is traced once for each kind of arguments, and replayed from then on.

    A kind is the structure of the arguments with the number of axes and the dtype of each; sizes are left open. The
    answer to a question about sizes (``if x.shape[0] > 3``, or whether an axis has the extent 1) holds for the program
    only: sizes for which it is another one make another program. A function that cannot do without numbers is traced
    for each of them. ``cache_info().reasons`` says why each trace was made, with the line that asked.

    The function sees traced values, which have shape and dtype but no elements: Python code in it runs while tracing
    only. Arguments and results are pytrees of arrays; Python numbers among the arguments are weak 0-d arrays, so that
    a new number is no new program. Whatever else is an argument (text, functions, dtypes, the object of a method, any
    value with a hash) is a constant of the program, and so is a default that stands, unless it is an array. The result
    may be differentiated, and called while another function is traced.

    A rebound global or closure variable makes a new trace; so does one whose elements were assigned to, or that has
    become a differentiated value. What is changed inside of other objects, or read from a module, is not noticed.

    Args:
        f: the function; without it, a decorator is returned.
        static_argnums: positions of arguments that are constants of the program: any hashable values.
        static_argnames: the same by name.
        donate: positions of arguments that are given away: results are written into their memory where that fits
            and nothing else holds it. Reading such a tensor afterwards raises `DonatedError`. Calls with differentiated
            or traced arguments, and numbers, give nothing away.
        deterministic: whether only passes run that keep every bit, so that the compiled function gives what its
            operations give one by one, with any number of threads; by default what the runtime says.
        placement: ``"auto"`` gives steps whose operands name no device to the open CPU pools where a cost model says
            that it pays, or a `CostModel` of your own; ``plan(...)`` says why. By default they stay in the calling
            thread.
        unroll: which loops of Python stay written out in the program. A stretch of many equal groups of steps, each of
            which goes on from the one before, is recorded as one loop, with the same bits; that compiles sooner. True
            leaves all steps as they are; a number, loops of so many iterations; False, none that can be told from
            chance. By default loops stay that are short or have few steps, since nothing is gained.
        backend: the compiler that runs the programs as a whole, and those of their derivatives and batches: ``"xla"``,
            ``"xla:<platform>:<i>"``, the name of another one that is installed, or a `ProgramCompiler`. It makes an
            executable for each combination of sizes, of one program. By default programs run on the devices of their
            arguments. Of functions that call each other, the outermost decides.

    Returns:
        A function with the signature of `f`, and with the methods of `CompiledFunction`: ``cache_info()``, ``clear()``,
        and for some arguments ``program``, ``plan``, ``save``, ``explain``, ``profile``, ``draw`` and ``find_nan``.

    Raises:
        DonatedError: an argument was given away by an earlier call.
        ArgumentError: an argument is neither an array, a number, a container of them nor a value with a hash, or the
            result is no tree of arrays; or `unroll` is neither a boolean nor a positive integer; or `backend` is given
            together with `placement` or `deterministic`, which it cannot promise.
        BackendUnavailableError: no compiler of the name `backend` is installed, or its device is missing.
        TracingError: the function asked for the elements of a traced value.

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
            f"placement={placement!r:.80} places nothing; pass 'auto', a CostModel, or leave it out",
            placement=placement,
        )
    if unroll is not None and not (isinstance(unroll, bool) or (isinstance(unroll, int) and unroll >= 1)):
        raise ArgumentError(
            f"compile leaves loops of Python written out (unroll=True), those of so many iterations, or none (False), "
            f"got {unroll=}; leave it out to let their length decide"
        )
    compiler = None if backend is None else find_compiler(backend)
    if compiler is not None and (deterministic or placement is not None):
        raise ArgumentError(
            f"{compiler.name} runs a program as a whole, and promises neither the bits of single steps "
            f"({deterministic=}) nor a device for each of them ({placement=}); leave these out, or leave backend= out"
        )
    state = Compiled(f, numbers, names, donated, deterministic, placement, unroll, compiler)
    entry: Any = state.entry

    def traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        here = state.scoped()
        signature = here.signature
        dynamic, static = signature.split((args, kwargs) if signature.names is None else entry.parameters(args, kwargs))
        leaves, treedef, constants = here.flattened(dynamic)
        found = here.find(static, leaves, treedef, constants)
        form = found.form
        names = signature.names and tuple([n for n in signature.names if n not in signature.static_names])
        return Traced(state.title, names, form.program, treedef, form.tree, form.fixed, found.leaves, found.captured,
                      signature.given_leaves(treedef))  # fmt: skip

    entry.cache_info, entry.clear = state.info, state.clear
    equip(entry, traced)
    return entry


def _places(placement: Any) -> bool:
    with importing():  # by those who have several devices
        from tenferro_runtime.executing import CostModel
    return isinstance(placement, CostModel) or (isinstance(placement, str) and placement == "auto")
