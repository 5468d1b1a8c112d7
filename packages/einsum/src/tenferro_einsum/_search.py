"""Search for contraction orders, with a time limit, a progress bar, and a persistent cache by structure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import Any, Final

from tenferro_einsum._tree import Numbers, Path, Steps, checked_path, numbered
from tenferro_runtime.extension import ArgumentError, BoundedCache, UnsupportedError, library
from tenferro_runtime.progress import Bar, is_shown

PATHS: BoundedCache[Any, Path] = BoundedCache("tenferro_einsum: paths", 4096)
"""Paths by canonical labels, extents and strategy."""

FORMAT: Final = "tenferro-einsum paths 1"

STRATEGIES: Final = frozenset({"auto", "auto-hq", "greedy", "optimal", "dp", "random-greedy"})
"""Strategies that are valid without importing opt_einsum, which is slow to import."""

CLOCK_INTERVAL: Final = 0.02
"""Seconds of random orders between checks of the clock; one order of a large network takes longer."""

Progress = Callable[[float, float], None]
"""Called with the elapsed fraction of the time, and the multiplications of the best order so far."""


@dataclass(frozen=True)
class Search:
    """The options of a search for an order.

    Attributes:
        optimize: ``"auto"`` or another strategy of opt_einsum, ``"cotengra"``, ``True`` for ``"auto"``, ``False`` for
            left to right, an optimizer (a function of label sets, output and extents), or an explicit path or tree.
        time_limit: limit of the search in seconds.
        progress: ``True`` for a bar, or a function called with the elapsed fraction of the time and the best cost.
    """

    optimize: Any = "auto"
    time_limit: float | None = None
    progress: bool | Progress = False

    def __post_init__(self) -> None:
        order = self.optimize
        if not isinstance(order, (bool, str, tuple, list)) and not callable(order) and not hasattr(order, "get_path"):
            raise ArgumentError(
                f"einsum takes optimize as a bool, a name or a list of steps, a tree or an optimizer, got {order!r}"
            )
        require_progress("einsum", self.progress)
        if self.time_limit is not None and not (isinstance(self.time_limit, Real) and 0 < self.time_limit < math.inf):
            raise ArgumentError(f"einsum takes time_limit as a positive number of seconds, got {self.time_limit!r}")
        if self.time_limit is not None and self.optimize not in (True, "auto", "random-greedy", "cotengra"):
            raise ArgumentError(
                f"einsum: a time limit needs a search that can be stopped, with optimize='auto', 'random-greedy' or "
                f"'cotengra', not {self.optimize!r}"
            )

    def __call__(self, inputs: Steps, output: Numbers, sizes: list[int]) -> Path:
        """A path for operands with given labels; `sizes` holds the extent of each label."""
        if len(inputs) <= 2:
            self.require_known()
            return (tuple(range(len(inputs))),)
        if self.optimize is False:
            return tuple((0, 1) if i == 0 else (0, len(inputs) - 1 - i) for i in range(len(inputs) - 1))
        terms, result = numbered(inputs, output)
        number = {x: n for labels, t in zip(inputs, terms, strict=True) for x, n in zip(labels, t, strict=True)}
        extents = [0] * len(number)
        for x, n in number.items():
            extents[n] = sizes[x]
        strategy = self._strategy
        key = (terms, tuple(sorted(result)), tuple(extents), strategy, self.time_limit)
        if not isinstance(strategy, str):
            return self._found(terms, result, extents)
        return PATHS.get_or_make(key, lambda: self._found(terms, result, extents))

    def require_known(self) -> None:
        """Raise for unknown names and missing libraries, as a search would, if there is nothing to search."""
        if isinstance(self.optimize, str) and self.optimize not in STRATEGIES:
            if self.optimize == "cotengra":
                _cotengra()
            else:
                _by_name(self.optimize)

    @property
    def _strategy(self) -> Any:
        """The search function; it also orders the members of an explicit tree's groups."""
        return "auto" if self.optimize is True or isinstance(self.optimize, (tuple, list)) else self.optimize

    def _found(self, terms: Steps, output: Numbers, sizes: list[int]) -> Path:
        if callable(self.optimize):
            return checked_path(self.optimize(*_labelled(_letter, terms, output, sizes)), len(terms))
        if self.optimize == "cotengra":
            path = self._cotengra(*_labelled(_letter, terms, output, sizes))
        else:
            # Sets of characters have another order in every process, and random orders would follow it.
            timed = self.time_limit is not None and len(terms) > 3  # three operands have but three orders
            search = self._greedy if timed else _by_name(self._strategy)
            with _global_random_state():
                path = search(*_labelled(int, terms, output, sizes), None)
        return tuple([tuple(step) for step in path])

    def _greedy(self, inputs: Any, output: Any, extents: Any, memory_limit: None) -> Any:
        """Try random greedy orders while there is time; the optimizer keeps the best one."""
        RandomGreedy = library("opt_einsum.path_random").RandomGreedy

        assert self.time_limit is not None
        start = time.monotonic()
        search, passed, each = RandomGreedy(max_repeats=1), 0.0, 0.0
        with reporting(self.progress) as tell:
            while not passed or passed + each <= self.time_limit:  # the first order is the greedy one
                best = search(inputs, output, extents, memory_limit)
                before, passed = passed, time.monotonic() - start
                each = (passed - before) / search.max_repeats
                search.max_repeats = max(1, int(CLOCK_INTERVAL / each)) if each else search.max_repeats
                tell(min(passed / self.time_limit, 1.0), float(search.best["flops"]))
            tell(1.0, float(search.best["flops"]))
        return best

    def _cotengra(self, inputs: Any, output: Any, extents: Any) -> Any:
        bar = self.progress is True or (self.progress is False and is_shown())
        # cotengra's default method list warns if kahypar is not installed.
        from importlib.util import find_spec

        methods = ["greedy", "kahypar" if find_spec("kahypar") else "labels"]
        search = _cotengra().HyperOptimizer(methods=methods, max_time=self.time_limit, progbar=bar, parallel=False)
        return search(inputs, output, extents)


def _labelled(label: Callable[[int], Any], terms: Steps, output: Numbers, sizes: list[int]) -> tuple[Any, Any, Any]:
    """Operands, output and extents in the form of opt_einsum, with a label for each number."""
    extents = {label(n): max(1, d) for n, d in enumerate(sizes)}
    return [frozenset(map(label, t)) for t in terms], frozenset(map(label, output)), extents


@contextmanager
def _global_random_state() -> Iterator[None]:
    """Keep the state of the module `random`, which opt_einsum seeds before each random order."""
    import random

    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def _letter(n: int) -> str:
    """A label as a character, for other libraries."""
    return chr(n + (192 if n < 0xD800 - 192 else 2048 + 192))  # skip the surrogates


def _cotengra() -> Any:
    try:
        return library("cotengra")
    except ImportError as cause:
        raise UnsupportedError(
            "einsum: optimize='cotengra' needs cotengra; pip install 'tenferro-einsum[cotengra]'"
        ) from cause


def _by_name(name: Any) -> Any:
    paths = library("opt_einsum.paths")
    try:
        return paths.get_path_fn(name)
    except KeyError as cause:
        raise ArgumentError(
            f"einsum: optimize={name!r} is unknown; use for example 'auto', 'greedy', 'optimal', 'dp' or, if it is "
            "installed, 'cotengra'",
            optimize=name,
        ) from cause


def require_progress(what: str, progress: Any) -> None:
    """Raise unless `progress` is a bool or a function."""
    if not isinstance(progress, bool) and not callable(progress):
        raise ArgumentError(f"{what} takes progress as a bool or a function, got {progress!r}")


@contextmanager
def reporting(progress: bool | Progress) -> Iterator[Progress]:
    """The progress callback: the user's function, or a bar if requested."""
    if callable(progress):
        yield progress
    elif not (progress or is_shown()):
        yield lambda part, best: None
    else:
        bar, last = Bar("einsum"), 0

        def tell(part: float, best: float) -> None:
            nonlocal last
            percent = round(100 * part)
            if percent > last:
                bar(percent, 100, f"{best:.3g}")
                last = percent

        try:
            yield tell
        finally:
            bar.close()


def save_paths(file: str | PathLike[str]) -> int:
    """Write all cached paths to a JSON file, for use by other processes.

    Args:
        file: path of the file.

    Returns:
        The number of paths written.

    See also:
        load_paths: reads the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = save_paths(f"{folder}/paths.json")
    ...     load_paths(f"{folder}/paths.json") == written
    True
    """
    rows = [[*map(_plain, key), _plain(path)] for key, path in list(PATHS.table.items())]
    import json
    from pathlib import Path

    Path(file).write_text(json.dumps({"format": FORMAT, "paths": rows}), encoding="utf-8")
    return len(rows)


def load_paths(file: str | PathLike[str]) -> int:
    """Read a file written by `save_paths` into the cache; contractions with the same structure reuse its paths.

    Args:
        file: path of the file.

    Returns:
        The number of paths read.

    Raises:
        ArgumentError: the file was not written by `save_paths`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     load_paths(f"{folder}/paths.json") if save_paths(f"{folder}/paths.json") < 0 else None
    """
    import json
    from pathlib import Path

    try:
        held = json.loads(Path(file).read_text(encoding="utf-8"))
        if held["format"] != FORMAT:
            raise ValueError(f"its format is {held['format']!r}")
        rows = [tuple(map(_tuples, row)) for row in held["paths"]]
        found = {(t, o, e, s, limit): checked_path(path, len(t)) for t, o, e, s, limit, path in rows}
    except (ValueError, KeyError, TypeError) as cause:
        raise ArgumentError(
            f"{file} is not a file of einsum paths ({cause}); write one with save_paths", file=str(file)
        ) from cause
    for key, path in found.items():
        PATHS.put(key, path)
    return len(found)


def _plain(value: Any) -> Any:
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
