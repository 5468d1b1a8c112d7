"""What notebooks show: well-formed markup of bounded size that loads and runs nothing, with the facts of the text."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from markup_pages import alone
from tenferro_ad import sparsity, variable
from tenferro_linalg.sparse import coo_array
from tenferro_tensor.markup import Markup, element, page, pixels

X = np.linspace(-1.0, 1.0, 12)
EVIL = "<img src=x onerror=alert(1)>"


def called(f: Any, *arguments: Any) -> Any:
    for argument in arguments:
        f(argument)
    return f


def scanned(x: Any) -> Any:
    return tr.scan(lambda c, y: (tr.tanh(c + y), None), 0.0, x)[0]


def logged() -> Any:
    with tr.transfers() as log:
        tr.to_device(tr.asarray(X), "cpu:0")
    return log


SHOWN = {
    "matrix": lambda: tr.asarray(X.reshape(3, 4)),
    "large matrix": lambda: tr.asarray(np.eye(1000)),
    "variable": lambda: variable(X),
    "many axes": lambda: tr.ones((30, 30, 30)),
    "no elements": lambda: tr.zeros((0, 3)),
    "complex": lambda: tr.asarray(np.full((40, 40), 1j)),
    "program": lambda: tr.trace(scanned, X),
    "compiled function": lambda: called(tr.compile(scanned), X, X.astype("f4"), X.astype("c16")),
    "compiled, not called": lambda: tr.compile(scanned),
    "explanation": lambda: tr.trace(scanned, X).explain(),
    "profile": lambda: tr.trace(scanned, X).profile(X, repeat=1),
    "bad step": lambda: tr.find_nan(tr.sqrt, X),
    "transfers": logged,
    "dispatch": lambda: tr.explain_dispatch(lambda x: tr.sin(x) + 1, X),
    "plan": lambda: tr.compile(scanned).plan(X),
    "loop nests": lambda: tr.show_ir(scanned, X),
    "sparse": lambda: coo_array((X, (np.arange(12), np.arange(12))), (100, 5000)),
    "sparsity": lambda: sparsity(lambda x: x[1:] * x[:-1], X),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_card_stands_alone(name: str) -> None:
    html = SHOWN[name]()._repr_html_()
    assert alone(html).text.strip() and html.startswith('<div class="tenferro">') and len(html) < 20_000


def test_cards_say_what_the_text_says() -> None:
    for name in ("explanation", "profile", "transfers", "dispatch"):
        report = SHOWN[name]()
        shown = alone(report._repr_html_()).text
        assert all(word in shown for word in str(report).split())


def test_rich_draws_the_same_tables() -> None:
    console = pytest.importorskip("rich.console").Console(width=200, record=True, file=io.StringIO())
    for name in ("explanation", "profile", "transfers", "dispatch"):
        report = SHOWN[name]()
        console.print(report)
        shown = console.export_text()
        assert report._heading in shown and all(word in shown for word in str(report).split())


def test_long_reports_are_cut() -> None:
    def many(x: Any) -> Any:
        for _ in range(600):
            x = tr.sin(x)
        return x

    program = tr.trace(many, X)
    explained = program.explain()
    assert len(str(explained).splitlines()) > 600
    shown = explained._repr_html_()
    assert len(shown) < 40_000 and "480 more rows" in shown
    assert len(program._repr_html_()) < 40_000


def test_names_are_text() -> None:
    program = tr.trace(tr.sin, X)
    named = tr.Program(program.input_ids, {}, program.equations, program.output_ids, program.specs, names={0: EVIL})

    def f(x: Any) -> Any:
        return x + 1

    f.__qualname__ = EVIL
    compiled: Any = tr.compile(f)
    for html in (named._repr_html_(), named.draw(format="html"), named.draw(format="svg"), compiled._repr_html_()):
        assert "<img" not in html and EVIL in "".join([alone(html).text, *_attributes(html)])
    assert element("b", EVIL, title='"') == '<b title="&quot;">&lt;img src=x onerror=alert(1)&gt;</b>'
    assert "<i>" in element("b", Markup("<i></i>")) and EVIL not in page(EVIL, EVIL)


def _attributes(html: str) -> list[str]:
    return [value or "" for _, attributes in alone(html).seen for value in attributes.values()]


def test_an_image_has_a_pixel_for_each_block() -> None:
    matrix = np.zeros((120, 60))
    matrix[119, 0], matrix[0, 59] = 2.0, -1.0
    found = decoded(pixels(matrix))
    assert found.shape == (60, 30, 4)
    assert found[59, 0].tolist() == [230, 159, 0, 255] and found[0, 29].tolist() == [0, 114, 178, 128]
    assert np.count_nonzero(found[..., 3]) == 2
    assert decoded(pixels(np.array([[np.nan, 0.0]])))[0, :, 3].tolist() == [255, 0]


def decoded(image: str) -> np.ndarray:
    """The pixels of an image, by the rules of PNG for images without filters."""
    data = b64decode(image.partition("base64,")[2].partition('"')[0])
    columns, rows = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + length]), np.uint8).reshape(
        rows, 1 + 4 * columns
    )
    assert not lines[:, 0].any() and data.endswith(b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))
    return lines[:, 1:].reshape(rows, columns, 4)


def test_nothing_of_it_is_imported_until_asked() -> None:
    code = """if True:
        import sys
        import tenferro_runtime as tr
        x = tr.asarray([1.0])
        repr(x), repr(tr.trace(tr.sin, x))
        assert "tenferro_tensor.markup" not in sys.modules
        x._repr_html_()
        assert "tenferro_tensor.markup" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
