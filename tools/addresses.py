"""The addresses in addresses.toml, and the files that repeat them: metadata of distributions, a citation, a page.

``python3 tools/addresses.py`` writes those files; ``python3 tools/addresses.py source`` prints one address.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TITLES: Final = {"source": "Source", "documentation": "Documentation", "issues": "Issues"}
"""The addresses that distributions show, and their labels on an index."""


def addresses() -> dict[str, str]:
    """All addresses by name; those that are not known yet are empty."""
    found: dict[str, str] = tomllib.loads((ROOT / "addresses.toml").read_text(encoding="utf-8"))
    return found


def distribution(text: str, known: dict[str, str]) -> str:
    """The `pyproject.toml` of a distribution with the table of its addresses, or without one."""
    text = re.sub(r"\n\[project\.urls\]\n(?:.+\n)*", "", text)
    lines = [f'{title} = "{known[name]}"\n' for name, title in TITLES.items() if known[name]]
    table = f"\n[project.urls]\n{''.join(lines)}" if lines else ""
    end = re.search(r"\n\n\[", text[text.index("[project]") :])
    at = text.index("[project]") + end.start() + 1 if end else len(text)
    return f"{text[:at]}{table}{text[at:]}"


def citation(text: str, known: dict[str, str]) -> str:
    """The citation with the addresses that have a field there."""
    text = re.sub(r"^(?:url|repository-code): .*\n", "", text, flags=re.MULTILINE)
    fields = {"url": known["documentation"], "repository-code": known["source"]}
    return text + "".join([f'{field}: "{address}"\n' for field, address in fields.items() if address])


def landing(text: str, known: dict[str, str]) -> str:
    """The landing page with a link to the source, or without one."""
    source = f"[source]({known['source']})" if known["source"] else "source: not published yet"
    return re.sub(r"(?<= · )(?:\[source\]\(.*\)|source: not published yet)(?=\n)", source, text)


def conduct(text: str, known: dict[str, str]) -> str:
    """The code of conduct with whom to write to."""
    whom = known["conduct"] or "the maintainers"
    return re.sub(r"(?<=<!-- conduct -->).*(?=<!-- /conduct -->)", whom, text)


def written(known: dict[str, str]) -> dict[Path, str]:
    """The files that repeat addresses, and what they must say."""
    files = dict.fromkeys(sorted(ROOT.glob("packages/*/pyproject.toml")), distribution)
    files |= {
        ROOT / "CITATION.cff": citation,
        ROOT / "docs" / "index.md": landing,
        ROOT / "CODE_OF_CONDUCT.md": conduct,
    }
    return {path: change(path.read_text(encoding="utf-8"), known) for path, change in files.items()}


if __name__ == "__main__":
    if sys.argv[1:]:
        print(addresses()[sys.argv[1]])
    else:
        for path, text in written(addresses()).items():
            path.write_text(text, encoding="utf-8")
