"""The site: its installation form, its list of pages for programs that read, and requests to other hosts."""

import re
from pathlib import Path

import pytest

import foreign_requests
import llms_txt
import markdown_blocks
import notebooks
from workspace import PROJECTS, ROOT

INDEX = (ROOT / "docs" / "index.md").read_text()
NAVIGATION = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [page for _, page in llms_txt.navigation(NAVIGATION)]
    there = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sorted(listed) == sorted(there)


def test_the_form_offers_every_extra_and_nothing_else() -> None:
    """But for those that bring nothing or only parts, which have boxes of their own."""
    offered = {word for value in re.findall(r'value="([^"]+)"', INDEX) for word in value.split()}
    extras = {
        f"tenferro-{name}[{extra}]"
        for name, project in PROJECTS.items()
        for extra, brought in project.get("optional-dependencies", {}).items()
        if not all(requirement.startswith("tenferro-") for requirement in brought)
    }
    assert {word for word in offered if "[" in word} == extras
    assert {word for word in offered if "[" not in word} <= {f"tenferro-{name}" for name in PROJECTS}
    command = re.findall(r"^pip install (.*)$", INDEX, re.MULTILINE)[-1]
    assert command.split() == re.findall(r'value="(tenferro-\S+)" checked', INDEX)


def test_the_form_names_what_it_installs() -> None:
    """Without scripts, a reader types these names."""
    for value, label in re.findall(r'value="([^"]+)".*?> (.*?)</label>', INDEX):
        assert {f"`{word}`" for word in value.split()} == set(re.findall(r"`[^`]+`", label))


def test_list_of_pages() -> None:
    listing = llms_txt.listing()
    assert listing.startswith("# tenferro\n\n> Tensors for scientific computing in Python")
    assert "\n## Reference\n" in listing
    lines = re.findall(r"^- \[.+\]\((\S+)\.html\)(: .*)?$", listing, re.MULTILINE)
    assert len(lines) == len(list(llms_txt.navigation(NAVIGATION)))
    described = [line for _, line in lines if line]
    assert len(described) > 0.8 * len(lines)
    assert "](" not in "".join(described)
    assert "def transmitted(potential):" in llms_txt.full()


@pytest.mark.parametrize("name", notebooks.names())
def test_tutorials_are_notebooks(name: str) -> None:
    """The cells are the program of the page, and the page of tutorials offers the file."""
    page = notebooks.TUTORIALS / f"{name}.md"
    cells = notebooks.notebook(page.read_text())["cells"]
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    assert code.split() == markdown_blocks.program(page).split()
    assert f'<a href="{name}.ipynb" download>' in (page.parent / "index.md").read_text()
    assert not re.search(r"\]\((?!https?:)|^```python", "".join(c["source"] for c in cells if c["cell_type"] != "code"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://host.org/a.js"></script>', ["https://host.org/a.js"]),
        ('<link rel="stylesheet" href="//host.org/a.css">', ["//host.org/a.css"]),
        ("<style>@import 'https://host.org';</style>", ["https://host.org"]),
        ('<p style="background: url(https://host.org/a.png)">', ["https://host.org"]),
        ('<img src="https://host.org/a.png">', ["https://host.org/a.png"]),
        ('<a href="https://host.org"><img src="a.png"></a><link rel="canonical" href="https://host.org">', []),
    ],
)
def test_requests_to_other_hosts(text: str, found: list[str], tmp_path: Path) -> None:
    assert foreign_requests.of_page(text) == found
    (tmp_path / "page.html").write_text(text)
    assert [address for _, address in foreign_requests.of_site(tmp_path)] == found


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/assets/**/*.*")), ids=lambda path: path.name)
def test_assets_load_nothing_from_other_hosts(path: Path) -> None:
    if path.suffix in (".svg", ".css"):
        text = path.read_text()
        assert foreign_requests.of_page(text) + foreign_requests.IN_STYLE.findall(text) == []
    if path.name == "katex.min.js":  # vendored; it names XML's vocabularies
        assert set(re.findall(r"//([\w.-]+)/", path.read_text())) == {"www.w3.org"}
    elif path.suffix == ".js":
        assert "//" not in re.sub(r"^\s*// .*$", "", path.read_text(), flags=re.MULTILINE)


FIGURE = re.compile(r"\*(?P<row>[^*\n]+)\*: (?P<time>[\d.]+ [µm]s)(?:; (?P<factors>.+?))?\.$", re.MULTILINE)


@pytest.mark.parametrize("path", [ROOT / "docs" / "index.md", ROOT / "README.md"], ids=lambda path: path.name)
def test_figures_are_those_of_the_benchmark_page(path: Path) -> None:
    """A row keeps its name, and a new record changes the figures that pages quote."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    quoted = list(FIGURE.finditer(path.read_text()))
    assert len(quoted) >= 5
    for each in quoted:
        table = next(part for part in page.split("\n### ") if f"| {each['row']} |" in part)
        head, row = re.findall(rf"^\| (?:row|{re.escape(each['row'])}) \|.*$", table, re.MULTILINE)
        cells = [cell.strip(" *") for cell in row.split("|")]
        said = dict(zip([cell.strip() for cell in head.split("|")], cells, strict=True))
        factors = dict(re.findall(r"(\w+) ([\d.]+)×", each["factors"] or ""))
        assert {"tenferro": each["time"], **factors} == {name: said[name] for name in ("tenferro", *factors)}
    for peer, times in re.findall(r"(JAX|PyTorch)(?: takes)? ([\d.]+)\s+times", path.read_text()):
        assert re.search(rf"^\| {peer} \| \d+ \| {times} \|", page, re.MULTILINE)


def test_landing_page_names_this_version() -> None:
    (version,) = {project["version"] for project in PROJECTS.values()}
    assert f"Version {version} · Python 3.11 or newer · MIT licence" in INDEX
    assert f"copyright: tenferro {version}," in NAVIGATION


def test_formulas_are_closed() -> None:
    """KaTeX shows a formula that does not end, or a brace without a partner, as text."""
    assert "KaTeX 0.19.1" in (ROOT / "docs" / "assets" / "math.js").read_text()
    for page in ROOT.glob("docs/**/*.md"):
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        displayed = re.findall(r"^\$\$$\n(.*?)^\$\$$", prose, re.MULTILINE | re.DOTALL)
        inline = re.findall(r"(?<!\$)\$(?!\$)([^$]+)\$(?!\$)", re.sub(r"^\$\$$.*?^\$\$$", "", prose, flags=re.M | re.S))
        assert prose.count("$") == 4 * len(displayed) + 2 * len(inline), page.name
        assert [text for text in displayed + inline if text.count("{") != text.count("}")] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site names them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = [
        re.sub(r"[^\w\s-]", "", title).strip().lower() for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    return {re.sub(r"[-\s]+", "-", heading) for heading in headings}


def test_links_to_headings_lead_somewhere() -> None:
    """`dev docs` checks links strictly; this finds a renamed heading without building the site."""
    broken = []
    for page in ROOT.glob("docs/**/*.md"):
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text()):
            if anchor not in anchors(page.parent / target if target else page):
                broken.append(f"{page.name}: {target}#{anchor}")
    assert broken == []
