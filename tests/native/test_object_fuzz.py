"""No act on an object of the library ends the process, however rude: a slice of the campaign, and that it sees."""

import sys
from typing import Any

import pytest

import object_fuzz
import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_ad._backward import backward_pass
from tenferro_tensor_core import GradientError, TenferroError


def test_a_slice_of_the_campaign_ends_well() -> None:
    assert object_fuzz.campaign(range(2), 120) == []


def test_a_planted_crash_is_seen_and_reduced_to_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_fuzz.PLANT, "3")
    (report,) = object_fuzz.campaign([0], 5)
    assert report.startswith(f"seed 0, steps 3 to 3: exit code {-11 if sys.platform != 'win32' else ''}")
    assert "step 3" in report


ACTS: dict[str, Any] = {
    "sum": lambda x, y: x + y, "swapped": lambda x, y: y + x, "number": lambda x, y: x * 2.0,
    "reflected": lambda x, y: 2.0 - x, "negative": lambda x, y: -x, "product": lambda x, y: x @ y,
    "function": lambda x, y: tr.exp(x), "three": lambda x, y: tr.where(y > 0, x, y),
    "numbers": lambda x, y: tr.clip(y, 0.0, x), "recorded": lambda x, y: ad.variable(y) * x,
    "reduction": lambda x, y: tr.sum(x), "compiled": tr.compile(lambda x, y: x * y + 1), "step": tr.compile(tr.add),
}  # fmt: skip
RECORDED: dict[str, Any] = {
    "product": lambda v, w: v * w, "swapped": lambda v, w: w + v, "number": lambda v, w: v * 2.0,
    "function": lambda v, w: tr.exp(v),
}  # fmt: skip
DAMAGE = {"none": ("parents", None), "list": ("parents", [1]), "number": ("parents", (3,)), "vjp": ("vjp", 3)}


@pytest.mark.parametrize("slot", ["_data", "spec"])
@pytest.mark.parametrize("act", ACTS)
def test_an_emptied_tensor_is_an_error(slot: str, act: str) -> None:
    for _ in range(4):  # what machine code there is, is in place
        ACTS[act](tr.ones(8), tr.ones(8))
    x = tr.ones(8)
    object.__delattr__(x, slot)
    with pytest.raises((AttributeError, TenferroError)):
        ACTS[act](x, tr.ones(8))


@pytest.mark.parametrize("slot", ["value", "spec", "level", "node"])
@pytest.mark.parametrize("act", RECORDED)
def test_an_emptied_recorded_value_is_an_attribute_error(slot: str, act: str) -> None:
    for _ in range(4):
        RECORDED[act](ad.variable(tr.ones(8)), ad.variable(tr.ones(8)))
    v = ad.variable(tr.ones(8))
    object.__delattr__(v, slot)
    with pytest.raises(AttributeError):
        RECORDED[act](v, ad.variable(tr.ones(8)))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("emptied", [False, True])
def test_a_sweep_refuses_damaged_nodes(damage: str, emptied: bool) -> None:
    v = ad.variable(tr.ones(8))
    z = tr.sum(tr.sin(v) * v)
    node = z.node.parents[0]  # type: ignore[attr-defined]
    name, value = DAMAGE[damage]
    if emptied:
        object.__delattr__(node, name)
    else:
        object.__setattr__(node, name, value)
    with pytest.raises((GradientError, AttributeError, TypeError)):
        z.backward()


def test_a_root_that_is_no_node_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError), match="node|attribute"):
        backward_pass([(3, tr.ones(8))])  # type: ignore[list-item]
