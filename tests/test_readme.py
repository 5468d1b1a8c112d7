"""Documents are programs: every Python block of the README and of docs/ runs, and prints what it says."""

import re
import warnings
from pathlib import Path

import pytest

import figures
import markdown_blocks
import tenferro_cpu
from simulated.installed import no_accelerator
from tenferro_cpu.native import available
from tenferro_tensor.catalog import tanh
from workspace import ROOT

TOP = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CODE_OF_CONDUCT.md"]
PAGES = [*TOP, *sorted(ROOT.glob("packages/*/README.md")), *sorted(ROOT.glob("docs/**/*.md"))]
FUSED = {"debugging.md", "fusion.md", "memory.md"}
"""Pages that print steps, peaks and kernels as they are with machine code."""
ON_TWO_CORES = {"scaling-out.md"}
"""Pages that print what plans take, which have some memory for each core."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if markdown_blocks.program(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_page_runs(page: Path) -> None:
    if page.name in FUSED and not (available() and tenferro_cpu.device().toolchain().renderer.supports(tanh, "f8")):
        pytest.skip("the page shows fused steps, which are machine code, some of it for vectors")
    if page.name in ON_TWO_CORES and tenferro_cpu.info()["cores"] != 2:
        pytest.skip("the page shows the memory of plans for two cores")
    with no_accelerator():  # a page may bring one
        if not figures.DRAWS.search(markdown_blocks.program(page)):
            markdown_blocks.run(page)
            return
        with figures.saved() as names:
            markdown_blocks.run(page)
    shown = re.findall(r"!\[[^]]+\]\([^)]*assets/figures/([^)]+)\)", page.read_text())
    assert names == shown, "a page shows the figures that it saves, in this order, each with a description"


def test_every_figure_is_on_a_page() -> None:
    texts = "".join(page.read_text() for page in PAGES)
    assert [path.name for path in figures.FIGURES.glob("*") if path.name not in texts] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "{.python .torch}" in page.read_text()], ids=lambda p: p.name
)
def test_page_runs_with_pytorch(page: Path) -> None:
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyTorch's own, in forward mode
        markdown_blocks.run(page, "torch")


def test_blocks_for_a_library_run_only_with_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)  #> 1\n```\n\n```{.python .torch}\nprint(2)  #> 2\n```\n")
    assert "2" not in markdown_blocks.program(page)
    markdown_blocks.run(page, "torch")


def test_readme_shows_a_short_example() -> None:
    code = markdown_blocks.program(ROOT / "README.md")
    assert 5 <= sum(bool(line.strip()) for line in code.splitlines()) <= 15
    assert re.findall(r"^(?:import|from) .*$", code, re.MULTILINE) == ["import tenferro_runtime as tr"]


def test_readme_gives_two_commands_and_two_installations() -> None:
    blocks = re.findall(r"^```(?:sh|bash|console)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    wheels, *commands, install = [line for block in blocks for line in block.splitlines()]
    assert wheels == 'pip install "tenferro-ad[all]"'
    assert commands == ["python3 dev demo", "python3 dev test"]
    assert install.startswith("pip install ./packages/tensor-core ./packages/tensor ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    code = r"^```.*?^```$|`[^`\n]*`"  # code indexes and calls: f[x](y)
    prose = re.sub(code, "", page.read_text(), flags=re.M | re.S)
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose)
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)  #> 2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\n1 / 0\n```\n",
        "```python\na = 1\n```\n\ntext\n\n```python\nassert a == 2\n```\n",
    ],
)
def test_a_wrong_page_would_be_seen(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        markdown_blocks.run(tmp_path / "page.md")


def test_a_right_page_passes_and_keeps_its_line_numbers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\na = 1\n```\n\n```python\nprint(a + 1)  #> 2\n```\n")
    markdown_blocks.run(page)
    assert markdown_blocks.program(page).splitlines()[3] == "a = 1"
