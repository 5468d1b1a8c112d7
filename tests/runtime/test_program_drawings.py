"""Programs as graphs: DOT that parses, HTML that needs nothing else."""

import re

import numpy as np
import pytest
from hypothesis import given

import tenferro_runtime as tr
from markup_pages import alone, page
from random_programs import Random, random_functions
from runtime_rooms import lowered
from tenferro_ad import grad
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")
NODE = re.compile(r'  n(\d+) \[label="((?:[^"\\]|\\.)*)", tooltip="(?:[^"\\]|\\.)*", fillcolor="#[0-9a-f]{6}"\];')
EDGE = re.compile(r"  n(\d+) -> n(\d+);")


def parsed(dot: str) -> tuple[dict[int, str], set[tuple[int, int]]]:
    """Nodes and edges; every line must be one that the DOT grammar allows."""
    head, style, *body, tail, end = dot.split("\n")
    assert (head, tail, end) == ("digraph program {", "}", "") and style.startswith("  node [") and style[-1] == ";"
    nodes: dict[int, str] = {}
    edges: set[tuple[int, int]] = set()
    for line in body:
        node, edge = NODE.fullmatch(line), EDGE.fullmatch(line)
        assert node or edge, line
        if node:
            nodes[int(node[1])] = node[2]
        elif edge:
            edges.add((int(edge[1]), int(edge[2])))
    assert all(a in nodes and b in nodes and a < b for a, b in edges)
    return nodes, edges


def test_the_graph_has_inputs_constants_steps_and_outputs() -> None:
    k = tensor([1.0, 2.0])
    nodes, edges = parsed(tr.trace(lambda x: (tr.tanh(x) * k + 2, x), Spec((2,), F8)).draw())
    words = [
        "v0\\nfloat64[2]",
        "v2\\nfloat64[2]",
        "tanh",
        "mul",
        "add(2)",
        "output 0\\nfloat64[2]",
        "output 1\\nfloat64[2]",
    ]
    assert list(nodes.values()) == words
    assert edges == {(0, 2), (2, 3), (1, 3), (3, 4), (4, 5), (0, 6)}


@given(random_functions())
def test_every_program_has_a_well_formed_drawing(f: Random) -> None:
    program = tr.trace(f, *f.inputs)
    nodes, _ = parsed(program.draw())
    assert len(nodes) == len(program.input_ids + program.output_ids) + len(program.constants) + len(program.equations)
    page(program.draw(format="html"))
    page(program.draw(format="svg"))


def boxes(drawing: str) -> int:
    return sum(tag == "rect" for tag, _ in page(drawing).seen)


def test_a_page_shows_the_steps_that_run_and_opens_those_that_hold_others() -> None:
    def f(u):
        u = tr.scan(lambda c, _: (tr.tanh(c) * 2 + 1, None), u, length=7)[0]
        return tr.sort(tr.exp(-u) * u)

    program = tr.trace(f, tr.ones(5))
    drawn, text = program.draw(format="html"), program.draw(format="svg")
    assert "scan, 7 times" in text and boxes(text) == 2 + len(program.equations)
    assert drawn.count("<details") == 1 and boxes(drawn) > boxes(text) and "tanh" in drawn and "tanh(" not in text
    split = lowered(tr.compile(lambda u: tr.sum(u * u - u * 2), deterministic=True).program(tr.ones(5)))
    assert "3 fused steps" in split.draw(format="svg") and boxes(split.draw(format="svg")) == 4
    assert split.draw(format="html").count("<details") == 1 and boxes(split.draw(format="html")) == 4 + 5


def test_a_long_program_is_drawn_in_few_boxes_along_its_lines() -> None:
    def f(x, ws):
        for w in ws:
            x = tr.tanh(x @ w)
        return tr.sum(x)

    for count in (40, 400):
        drawing = tr.trace(f, tr.ones((2, 2)), [tr.ones((2, 2))] * count).draw(format="svg")
        assert boxes(drawing) <= 2 + 32 + 1 and len(drawing) < 60_000
        assert f"{count + 1} inputs" in drawing and "x = tr.tanh(x @ w)" in drawing


def test_a_page_needs_nothing_from_elsewhere() -> None:
    text = tr.trace(grad(lambda x: tr.sum(tr.tanh(x @ x) * 2)), Spec((3, 3), F8)).draw(format="html")
    assert alone(text).text.startswith("\n")


def test_boxes_do_not_overlap() -> None:
    drawn = page(tr.trace(grad(lambda x: tr.sum(tr.tanh(x @ x) * 2)), Spec((3, 3), F8)).draw(format="html"))
    corners = [(float(a["x"]), float(a["y"])) for tag, a in drawn.seen if tag == "rect"]
    svg = next(a for tag, a in drawn.seen if tag == "svg")
    for i, (x, y) in enumerate(corners):
        assert 0 <= x <= float(svg["width"]) - 196 and 0 <= y <= float(svg["height"]) - 34
        assert all(abs(x - u) >= 196 or abs(y - v) >= 34 for u, v in corners[:i])


def test_names_are_text_not_markup() -> None:
    program = tr.trace(lambda x: tr.tanh(x), Spec((2,), F8))
    program = tr.Program(
        program.input_ids, {}, program.equations, program.output_ids, program.specs, names={0: '<b>"\\'}
    )
    assert "<b>" not in program.draw(format="html")
    parsed(program.draw())


def test_the_ending_chooses_the_format(tmp_path) -> None:
    program = tr.trace(lambda x: x + 1, Spec((2,), F8))
    for name, start in (("p.dot", "digraph"), ("p.svg", "<svg xmlns"), ("p.html", "<!DOCTYPE html>")):
        text = program.draw(tmp_path / name)
        assert text.startswith(start) and (tmp_path / name).read_text() == text
    with pytest.raises(ArgumentError, match="draw writes dot, svg, html, got format='pdf'; name the file"):
        program.draw(tmp_path / "p.pdf")
