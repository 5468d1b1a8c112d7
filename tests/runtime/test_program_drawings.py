"""Programs as graphs: DOT that parses, HTML that needs nothing else."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given

import tenferro_runtime as tr
from random_programs import Random, random_functions
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


class Page(HTMLParser):
    """Checks that tags close, and collects them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(text: str) -> Page:
    found = Page()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


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
    drawn = page(program.draw(format="html"))
    assert sum(tag == "rect" for tag, _ in drawn.seen) == len(nodes)


def test_a_page_needs_nothing_from_elsewhere() -> None:
    text = tr.trace(grad(lambda x: tr.sum(tr.tanh(x @ x) * 2)), Spec((3, 3), F8)).draw(format="html")
    drawn = page(text)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in drawn.seen}
    assert not any(name in ("src", "href") for _, attrs in drawn.seen for name in attrs)
    assert re.findall(r"url\(|@import", text) == []


def test_boxes_do_not_overlap() -> None:
    drawn = page(tr.trace(grad(lambda x: tr.sum(tr.tanh(x @ x) * 2)), Spec((3, 3), F8)).draw(format="html"))
    corners = [(float(a["x"]), float(a["y"])) for tag, a in drawn.seen if tag == "rect"]
    svg = next(a for tag, a in drawn.seen if tag == "svg")
    for i, (x, y) in enumerate(corners):
        assert 0 <= x <= float(svg["width"]) - 180 and 0 <= y <= float(svg["height"]) - 34
        assert all(abs(x - u) >= 180 or abs(y - v) >= 34 for u, v in corners[:i])


def test_names_are_text_not_markup() -> None:
    program = tr.trace(lambda x: tr.tanh(x), Spec((2,), F8))
    program = tr.Program(
        program.input_ids, {}, program.equations, program.output_ids, program.specs, names={0: '<b>"\\'}
    )
    assert "<b>" not in program.draw(format="html")
    parsed(program.draw())


def test_the_ending_chooses_the_format(tmp_path) -> None:
    program = tr.trace(lambda x: x + 1, Spec((2,), F8))
    for name, start in (("p.dot", "digraph"), ("p.html", "<!DOCTYPE html>")):
        text = program.draw(tmp_path / name)
        assert text.startswith(start) and (tmp_path / name).read_text() == text
    with pytest.raises(ArgumentError, match="draw writes dot or html, got format='svg'; name the file"):
        program.draw(tmp_path / "p.svg")
