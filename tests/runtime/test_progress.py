"""The bar of `scan`: it moves about a hundred times, in every mode, and changes no result."""

import io
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from markup_pages import alone
from tenferro_ad import grad, jvp
from tenferro_einsum import einsum
from tenferro_runtime import progress


def total(xs: Any, **how: Any) -> Any:
    def decay(c: Any, x: Any) -> Any:
        return 0.5 * c + x, c * x

    last, rows = tr.scan(decay, 0.0, xs, **how)
    return last + tr.sum(rows)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What bars of text have shown since the last call, without times."""
    monkeypatch.setitem(sys.modules, "tqdm", None)

    def shown() -> list[str]:
        return re.sub(r" [0-9.]+ s", "", capsys.readouterr().err).replace("\n", "").split("\r")[1:]

    return shown


FOUR = ["decay  25% 1/4", "decay  50% 2/4", "decay  75% 3/4", "decay 100% 4/4"]
XS = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("outside", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "transform",
    [lambda f: f, grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: grad(tr.compile(f))],
    ids=["plain", "grad", "jvp", "compiled inside"],
)
@pytest.mark.parametrize("how", [{}, {"reverse": True}, {"unroll": 2}], ids=str)
def test_a_bar_moves_once_whatever_the_transform(transform: Any, outside: bool, how: Any, lines: Any) -> None:
    wrap = tr.compile if outside else lambda f: f
    plain = wrap(transform(lambda xs: total(xs, **how)))(XS)
    run = wrap(transform(lambda xs: total(xs, progress=True, **how)))
    for _ in range(3):
        found = run(XS)
        assert lines() == FOUR
        for a, b in zip(tr.tree_leaves(found), tr.tree_leaves(plain), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_long_loops_move_it_a_hundred_times_for_any_length(wrap: Any, lines: Any) -> None:
    f = wrap(lambda xs: total(xs, progress="sum"))
    for n, count in ((1000, 100), (1055, 106), (3, 3), (0, 0)):
        f(np.ones(n))
        found = lines()
        assert len(found) == count and (not n or found[-1] == f"sum 100% {n}/{n}")
    assert wrap is not tr.compile or f.cache_info().traces <= 2


def test_all_lanes_share_a_bar(lines: Any) -> None:
    f = lambda xs: total(xs, progress=True)
    np.testing.assert_allclose(np.asarray(tr.vmap(f)(np.stack([XS, 2 * XS]))), [f(XS).item(), f(2 * XS).item()])
    assert lines() == FOUR * 3


def test_a_body_without_a_name_has_that_of_the_loop(lines: Any) -> None:
    tr.scan(lambda c, x: (c + x, None), 0.0, XS[:2], progress=True)
    assert lines() == ["scan  50% 1/2", "scan 100% 2/2"]


def test_tqdm_draws_it_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Drawn:
        def __init__(self, total: int, desc: str, **how: Any) -> None:
            self.total, self.desc, self.done, self.open = total, desc, 0, True
            made.append(self)

        def update(self, steps: int) -> None:
            self.done += steps

        def close(self) -> None:
            self.open = False

    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=Drawn))
    f = tr.compile(lambda xs: total(xs, progress="fit"))
    f(XS), f(XS[:2])
    assert [(bar.total, bar.done, bar.desc, bar.open) for bar in made] == [(4, 4, "fit", False), (2, 2, "fit", False)]


def test_a_run_after_an_error_begins_anew(lines: Any) -> None:
    fails = [True]

    def check(x: Any) -> None:
        if fails and x > 2:
            raise RuntimeError("stop")

    @tr.compile
    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            tr.debug_callback(check, x)
            return c + x, None

        return tr.scan(step, 0.0, xs, progress="sum")[0]

    with pytest.raises(RuntimeError, match="stop"):
        f(XS)
    assert lines() == ["sum  25% 1/4", "sum  50% 2/4"]
    fails.clear()
    assert f(XS).item() == 10.0 and lines() == [line.replace("decay", "sum") for line in FOUR]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def passes(x: Any) -> Any:
    return tr.compile(lambda x: tr.sin(x) * 2)(x)


def test_long_work_shows_bars_in_a_terminal_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    passes(XS)
    assert terminal.getvalue() == ""
    with tr.show_progress():
        passes(XS)
        tr.trace(tr.sin, XS).profile(XS, repeat=2)
    shown = re.sub(r" \d+\.\d s", "", terminal.getvalue())
    assert re.search(r"passes on 2 steps 100% (\d+)/\1\n", shown) and "profile  50% 1/2\rprofile 100% 2/2\n" in shown


def test_nothing_is_shown_in_a_file_or_for_short_work(lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with tr.show_progress():
        passes(XS)
    with tr.show_progress(always=True):
        passes(XS)  # takes less than half a second
    assert lines() == []


def test_slices_of_a_contraction_are_counted(lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    m = np.ones((32, 32))
    sliced = einsum("ab,bc,cd,da->", m, m, m, m, memory_budget=12_000, progress=True)
    shown = lines()
    assert shown[-1].startswith("einsum slices 100% ") and len(shown) > 1 and sliced.item() == 32.0**4


def test_notebooks_show_a_meter_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, card: str) -> None:
            shown.append(card)

    def display(card: str, display_id: bool) -> Handle:
        shown.append(card)
        return Handle()

    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    assert progress.interactive()
    tr.scan(lambda c, x: (c + x, None), 0.0, XS[:2], progress="<fit>")
    assert [dict(attributes).get("value") for c in shown for t, attributes in alone(c).seen if t == "progress"] == [
        "50",
        "100",
    ]
    assert all("<fit> " in alone(c).text for c in shown)
