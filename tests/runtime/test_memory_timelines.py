"""Memory of a profile over its steps: which line of code holds how many bytes when."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenferro_runtime as tr
from markup_pages import alone, page
from runtime_rooms import lowered
from tenferro_ad import grad
from tenferro_runtime.inspection import plan_memory
from tenferro_runtime.reports import MemoryBlock, MemoryTimeline

X = np.linspace(0.1, 1.0, 100).reshape(10, 10)


def layers(x: Any) -> Any:
    y = tr.exp(x)  # first <script>
    z = tr.sin(y)  # second
    for _ in range(3):
        z = tr.tanh(z @ y)  # third
    return tr.sum(z * z)


def texts(timeline: MemoryTimeline) -> dict[str, tuple[int, int]]:
    """Bytes at the peak and in all by the comment at the end of the line of code."""
    shown = {row[3].rpartition("# ")[2]: row for row in timeline._table().rows}
    return {text: sums[1:] for (text, _), sums in zip(shown.items(), timeline.lines, strict=True)}


def test_the_bytes_alive_are_those_of_the_memory_plan() -> None:
    for program in (tr.trace(layers, X), tr.trace(grad(layers), X)):
        timeline = program.profile(X, repeat=1).memory
        plan = plan_memory(lowered(program))
        assert timeline.alive == plan.live and max(timeline.alive) == plan.peak({})
        assert timeline.alive[timeline.peak_step] == max(timeline.alive)
        assert sum(at for _, at, _ in timeline.lines) == max(timeline.alive)


def test_a_line_has_what_it_allocates() -> None:
    found = texts(tr.trace(layers, X).profile(X, repeat=1).memory)
    assert found["first <script>"] == (800, 800) and found["second"][1] == 800 and found["third"][1] == 6 * 800


def test_the_memory_inside_of_a_loop_belongs_to_its_lines() -> None:
    def step(c: Any, _: Any) -> Any:
        wide = tr.concat([c, c], axis=0)  # wide
        return tr.sort(wide, axis=0)[:10] + c, None  # sorted

    program = tr.trace(lambda x: tr.scan(step, x, length=4)[0], X)
    timeline = program.profile(X, repeat=1).memory
    assert timeline.alive == plan_memory(lowered(program)).live
    assert texts(timeline)["wide"][0] == 1600 and texts(timeline)["sorted"][0] >= 1600


def test_blocks_are_drawn_on_top_of_each_other() -> None:
    blocks = (MemoryBlock("a.py:1", 0, 2, 100), MemoryBlock("b.py:2", 1, 1, 50), MemoryBlock("", 2, 3, 30))
    timeline = MemoryTimeline(("p", "q", "r"), blocks)
    assert timeline.alive == (100, 150, 130) and timeline.peak_step == 1
    found = alone(timeline._repr_html_())
    areas = [attributes["d"] for tag, attributes in found.seen if tag == "path" and "data-line" in attributes]
    assert len(areas) == 3 and areas[1].startswith("M70.0,82.0 283.3,82.0 283.3,22.0 496.7,22.0 496.7,82.0 710.0,82.0L")
    assert "peak 150 B, step 1" in found.text and "step 2: r, 130 B" in found.text
    assert alone(MemoryTimeline((), ())._repr_html_())


def test_many_lines_share_a_colour() -> None:
    blocks = tuple([MemoryBlock(f"a.py:{i}", i, 1000, 10 + i) for i in range(300)])
    timeline = MemoryTimeline(("p",) * 300, blocks)
    html = timeline._repr_html_()
    assert len(html) < 120_000 and sum("data-line" in a and t == "path" for t, a in alone(html).seen) == 7


def test_the_page_of_a_profile_needs_nothing_else(tmp_path: Any) -> None:
    profile = tr.compile(layers).profile(X)
    profile.to_html(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text("utf-8")
    found = page(text)
    assert [tag for tag, _ in found.seen].count("script") == 1 and "# first <script>" not in text
    assert not any(name in ("src", "href") for _, attributes in found.seen for name in attributes)
    assert "first <script>" in found.text and "2.41 kB at once" in found.text
    assert "<script" not in profile._repr_html_() and profile.native_bytes == 2408
