"""What is known already is not planned again: other labels in the same places, and searches that keep to their time."""

import random
import string
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_einsum import _einsum as front
from tenferro_einsum import _search as search
from tenferro_einsum import contract_path, einsum, plan
from tenferro_einsum._notation import canonical
from tenferro_tensor_core import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
TERMS = ("ij,jk,kl->il", "iij,jk->k", "ij,ij->ij", "i,i,i->i", "ij,jk->iik", "...i,ij->...j", "ij,kj,jl->", "i j, j->i")


def operands(equation):
    """Square operands of extent 3, with one axis more where there are dots."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    return [RNG.standard_normal((3,) * (len(t.replace("...", "d")))) for t in terms]


@given(st.sampled_from(TERMS), st.permutations(string.ascii_lowercase))
def test_other_labels_in_the_same_places_give_the_same(equation, letters):
    """Also where a label occurs several times, in the output too, and beside dots."""
    front.PLANS.clear()  # a full table starts anew, and this asks what is the same in it
    other = equation.translate({ord(x): y for x, y in zip("ijkl", letters)})
    xs = operands(equation)
    wanted = np.asarray(einsum(equation, *xs))
    np.testing.assert_array_equal(np.asarray(einsum(other, *xs)), wanted)
    assert canonical(other) == canonical(equation)
    assert plan(other, *xs)._run is plan(equation, *xs)._run


def test_a_plan_for_other_labels_tells_its_own():
    """In its text, its report, and the labels that it names."""
    front.PLANS.clear()
    xs = [np.ones((2, 3)), np.ones((3, 4))]
    first, second = plan("ab,bc->ac", *xs), plan("xy,yz->xz", *xs)
    assert second._run is first._run and second is plan("xy,yz->xz", *xs)
    assert first.report.steps[0].equation == "ab,bc->ac"
    assert second.report.steps[0].equation == "xy,yz->xz"
    assert contract_path("pq,qr->pr", *xs)[1].steps[0].equation == "pq,qr->pr"
    assert "x y, y z -> x z" in repr(second) and second.contraction.output == ("x", "z")
    third = plan(xs[0], ["row", 0], xs[1], [0, "column"], ["row", "column"])
    fourth = plan(xs[0], [(1, 2), "k"], xs[1], ["k", None], [(1, 2), None])
    assert fourth._run is third._run and fourth.contraction.inputs == (((1, 2), "k"), ("k", None))


def test_labels_that_stretch_keep_their_names():
    """An axis of extent 1 is left out of the contraction, not of its report."""
    xs = [np.ones((2, 3)), np.ones((1, 4))]
    plan("ab,bc->ac", *xs)
    assert plan("xy,yz->xz", *xs).report.steps[-1].equation == "x,z->xz"


def test_without_an_output_labels_are_sorted_and_count():
    """Two equations that differ in nothing but the order of their labels."""
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    assert canonical("ij,jk") is None
    assert einsum("aj,jb", x, y).shape == (2, 4) and einsum("bj,ja", x, y).shape == (4, 2)
    assert einsum(x, ["a", "j"], y, ["j", "b"]).shape == (2, 4)
    assert einsum(x, ["b", "j"], y, ["j", "a"]).shape == (4, 2)


def test_mistakes_name_the_labels_that_were_written():
    """A plan of the same structure is known, for other extents."""
    plan("ab,bc->ac", np.ones((2, 3)), np.ones((3, 4)))
    with pytest.raises(ShapeError, match="label 'y' has extent 3"):
        einsum("xy,yz->xz", np.ones((2, 3)), np.ones((5, 4)))
    with pytest.raises(ArgumentError, match="output label 'w'"):
        einsum("xy,yz->xw", np.ones((2, 3)), np.ones((3, 4)))


def test_plans_stay_bounded():
    """A shape after the other, and labels after labels."""
    for n in range(front.PLANS.bound + 50):
        plan(np.ones(n % 7 + 1), [("label", n)], np.ones(n % 7 + 1), [("label", n)], [])
    assert len(front.PLANS) <= front.PLANS.bound


@pytest.mark.parametrize(("each", "limit", "searches"), [(0.2, 0.5, 2), (0.2, 0.61, 3), (5.0, 0.5, 1), (0.5, 0.5, 1)])
def test_a_search_begins_no_order_for_which_there_is_no_time(monkeypatch, each, limit, searches):
    """By a clock that each order moves; there is always one order."""
    from opt_einsum import path_random

    clock, tried, told = [100.0], [], []
    trial = path_random._trial_greedy_ssa_path_and_cost

    def slow(number, *args):
        clock[0] += each
        tried.append(number)
        return trial(number, *args)

    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(path_random, "_trial_greedy_ssa_path_and_cost", slow)
    search.PATHS.clear()
    front.PLANS.clear()
    plan("ab,bc,cd,de->ae", *[np.ones((3, 3))] * 4, time_limit=limit, progress=lambda part, best: told.append(part))
    assert len(tried) == searches
    assert told == sorted(told) and told[-1] == 1.0 and all(0 < part <= 1 for part in told)


RING = """
from tenferro_einsum import contract_path
import numpy as np
labels = [(i, (i + step) % 12) for step in (1, 5) for i in range(12)]
operands = [part for pair in labels for part in (np.ones((2, 2)), pair)]
print([contract_path(*operands, [], optimize=name)[0] for name in ("auto", "auto-hq", "random-greedy")])
"""


def test_orders_are_the_same_in_every_process():
    """Also random ones, and where Python gives sets of characters another order."""
    found = [
        subprocess.run([sys.executable, "-c", RING], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        for seed in ("1", "2")
    ]
    assert found[0].stdout == found[1].stdout != "", found[0].stderr


def test_a_search_of_random_orders_leaves_the_random_numbers_of_python_alone():
    search.PATHS.clear()
    front.PLANS.clear()
    random.seed(5)
    wanted = [random.random() for _ in range(2)]
    random.seed(5)
    contract_path("ab,bc,cd,de->ae", *[np.ones((3, 3))] * 4, optimize="random-greedy")
    contract_path("ab,bc,cd,de,ef->af", *[np.ones((3, 3))] * 5, time_limit=0.01)
    assert [random.random() for _ in range(2)] == wanted
