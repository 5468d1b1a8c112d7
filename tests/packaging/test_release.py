"""The workflow of releases builds what docs/support.md promises."""

import re

from workspace import PROJECTS, ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text()
SUPPORT = (ROOT / "docs" / "support.md").read_text()

RUNNERS = {
    ("Linux", "x86-64"): "ubuntu-latest",
    ("Linux", "aarch64"): "ubuntu-24.04-arm",
    ("macOS", "arm64"): "macos-latest",
}


def row(start: str) -> str:
    """The second cell of the row of a table."""
    (cell,) = re.findall(rf"^\| {start}[^|]*\| ([^|]+) \|", SUPPORT, re.MULTILINE)
    return cell.strip()


def test_wheels_are_built_for_every_supported_python() -> None:
    (chosen,) = re.findall(r'CIBW_BUILD: "(.+)"', WORKFLOW)
    assert chosen.split() == [f"cp{version.replace('.', '')}-*" for version in row("Python ").split(", ")]


def test_wheels_are_built_for_every_supported_platform() -> None:
    promised = {(system, each) for system in ("Linux", "macOS") for each in row(f"{system} ").split(", ")}
    (runners,) = re.findall(r"^ +os: \[(.+)\]", WORKFLOW, re.MULTILINE)
    assert {RUNNERS[platform] for platform in promised} == set(runners.split(", "))
    (glibc,) = re.findall(r"glibc (\d+\.\d+)", SUPPORT)
    assert set(re.findall(r"IMAGE: (\S+)", WORKFLOW)) == {f"manylinux_{glibc.replace('.', '_')}"}
    (macos,) = re.findall(r"macOS (\d+) or newer", SUPPORT)
    assert f"MACOSX_DEPLOYMENT_TARGET={macos}.0" in WORKFLOW


def test_what_is_compiled_has_pure_wheels_and_every_level() -> None:
    import release

    folders = {path.parent.name for path in ROOT.glob("packages/*/hatch_build.py")}
    assert set(release.COMPILED) == {PROJECTS[folder]["name"] for folder in folders}
    (packages,) = re.findall(r"^ +package: \[(.+)\]", WORKFLOW, re.MULTILINE)
    assert set(packages.split(", ")) == folders
    assert "TENFERRO_BUILD_LEVELS=all" in WORKFLOW and "all/*-none-any.whl" in WORKFLOW
