"""Trees of contractions with the memory that is alive: as text, as SVG and in notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenferro_einsum as te
from markup_pages import alone
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")


def spec(*shape: int) -> Spec:
    return Spec(shape, F8)


def chain(count: int, extent: int = 4) -> te.ContractionPlan:
    """A product of matrices from the left to the right."""
    args: list[Any] = []
    for n in range(count):
        args += [spec(extent, extent), [n, n + 1]]
    return te.plan(*args, [0, count], optimize=False)


def test_the_bytes_alive_are_those_of_results_that_are_still_needed() -> None:
    report = te.plan("ij,jk,kl->il", spec(100, 100), spec(100, 100), spec(100, 100)).report
    assert [s.alive for s in report.steps] == [80_000, 160_000]
    assert report.operands == ("ij", "jk", "kl") and [s.result for s in report.steps] == ["ik", "il"]


def test_text_has_the_result_first_and_marks_the_peak() -> None:
    drawn = te.plan("ij,jk,kl->il", spec(100, 100), spec(100, 100), spec(100, 100)).draw()
    lines = drawn.splitlines()
    assert [line.split()[0].strip("├└─│ ") or line.split()[1] for line in lines] == ["il", "kl", "ik", "ij", "jk"]
    assert lines[0].split() == ["il", "step", "1", "2.00e+06", "156.2", "KiB", "██████████", "peak"]
    assert lines[2].split() == ["└─", "ik", "step", "0", "2.00e+06", "78.1", "KiB", "█████"]


def test_a_picture_has_a_mark_for_each_step_and_names_what_is_sliced() -> None:
    args = ("ab,bc,cd,da->", *[spec(64, 64)] * 4)
    plan = te.plan(*args)
    found = alone(plan._repr_html_())
    tags = [tag for tag, _ in found.seen]
    assert tags.count("circle") == tags.count("rect") == len(plan.steps)
    assert found.text.count("peak") == 1 and "step 0:" in found.text
    small = te.plan(*args, memory_budget=50_000)
    assert small.report.sliced and small.report.slices == np.prod([parts for _, parts in small.report.sliced])
    name, parts = small.report.sliced[0]
    for text in (alone(small._repr_html_()).text, small.draw(), str(small.report)):
        assert f"{name} in {parts}" in text
    peak = max(s.alive for s in small.report.steps)
    assert peak < max(s.alive for s in plan.report.steps) and peak <= small.peak_bytes


def test_large_contractions_stay_small() -> None:
    plan = chain(600)
    assert len(plan._repr_html_()) < 60_000
    assert len(plan.draw().splitlines()) == 81 and f"{600 + 599 - 80} more lines" in plan.draw()
    alone(chain(1).draw(format="svg")), alone(chain(2).draw(format="svg"))


def test_labels_are_text() -> None:
    plan = te.plan(spec(2, 2), ["<b>", "j"], spec(2, 2), ["j", "<script>"], ["<b>", "<script>"])
    assert "<script>" in alone(plan._repr_html_()).text


def test_the_ending_chooses_the_format(tmp_path) -> None:
    plan = chain(3)
    for name, start in (("t.txt", "03 "), ("t.svg", "<svg xmlns"), ("t.html", "<!DOCTYPE html>")):
        text = plan.draw(tmp_path / name)
        assert text.startswith(start) and (tmp_path / name).read_text("utf-8") == text
    with pytest.raises(ArgumentError, match="draw writes text, svg, html, got format='pdf'; name the file x.txt"):
        plan.draw(tmp_path / "t.pdf")
