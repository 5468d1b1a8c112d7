"""``python3 dev fuzz``: random cases of everything, for as long as asked.

Exits with 0 when nothing was found, with 1 when something was.
"""

import argparse
import os
import random
import signal
import sys
from pathlib import Path

import instrumented
from fuzzing.areas import AREAS
from fuzzing.campaign import Campaign, replay

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"


SANITIZED = instrumented.ROOT / "build" / "sanitized"

CALLING_C = ("layouts", "singles", "indexing", "einsum", "interchange", "sizes")
"""Areas that reach all C files and run under sanitizers."""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python3 dev fuzz", description=__doc__)
    p.add_argument("--minutes", type=float, default=10.0, help="time for everything (10)")
    p.add_argument("--seed", type=int, help="the first seed; random by default, and printed")
    p.add_argument("--area", action="append", choices=list(AREAS), help="only this one; may be repeated")
    p.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    p.add_argument("--cases", type=int, default=1 << 62, help="most cases of each area")
    p.add_argument("--batch", type=float, default=60.0, help="seconds that one process lives (60)")
    p.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="folder for findings (fuzz-findings)")
    p.add_argument("--resume", action="store_true", help="continue the campaign of the folder --out")
    p.add_argument("--replay", type=Path, metavar="PATH", help="try the cases of a file, or of all files of a folder")
    p.add_argument("--checked", action="store_true", help="test each access of machine code (TENFERRO_CHECKED=1)")
    p.add_argument("--sanitize", action="store_true", help="compile the C files with AddressSanitizer and UBSan")
    p.add_argument("--corpus", action="store_true", help="replay tests/fuzz/corpus and end")
    return p


def replay_all(path: Path) -> int:
    """Replay files; how many still fail."""
    failing = 0
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        failure = replay(file, AREAS)
        print(f"{'FAILS' if failure else 'passes'} {file.name}", flush=True)
        if failure:
            failing += 1
            print("   ", failure["kind"], failure["text"].strip().replace("\n", "\n    "))
    return failing


def main() -> int:
    options = parser().parse_args()
    if options.checked:
        os.environ["TENFERRO_CHECKED"] = "1"
    if options.sanitize:
        print("compiling the C files with sanitizers", flush=True)
        more = instrumented.sanitized(SANITIZED)
        if not more:
            raise SystemExit("the C compiler of this system has no AddressSanitizer; gcc and clang on Linux have it")
        os.environ.update(more | {"TENFERRO_CPU_LEVEL": "generic"})  # higher vector levels are not instrumented
    if options.replay or options.corpus:
        return min(1, replay_all(options.replay or CORPUS))
    seed = random.SystemRandom().randrange(10**6) * 1000 if options.seed is None else options.seed
    areas = [AREAS[name] for name in options.area or (CALLING_C if options.sanitize else AREAS)]
    print(f"seed {seed}, areas {' '.join(a.name for a in areas)}", flush=True)
    seconds = options.minutes * 60
    campaign = Campaign(areas, seconds, seed, options.jobs, options.out, options.cases, options.batch)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: campaign.stopping.set())
    if options.resume:
        campaign.resume()
    campaign.run()
    print(f"\n{'area':12} {'cases':>9} {'trials':>9} {'seconds':>8} {'per s':>6}")
    for area in areas:
        count, took = campaign.counts[area.name], campaign.spent[area.name]
        print(f"{area.name:12} {count:9} {campaign.trials[area.name]:9} {took:8.0f} {count / max(took, 1e-9):6.0f}")
    for name, number in sorted(campaign.more.items()):
        print(f"{number:12} {name}")
    for finding in campaign.findings.values():
        print(f"{campaign.times(finding):6} times  {finding.signature}")
    print(f"{len(campaign.findings)} findings, seed {seed}")
    return int(bool(campaign.findings))


if __name__ == "__main__":
    sys.exit(main())
