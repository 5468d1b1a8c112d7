"""`Campaign`: batches of all areas in child processes until time is up, and what they found."""

import json
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing.area import Area, Case
from fuzzing.process import Gone, Process, Stopped
from fuzzing.reducing import Failure, Reducer, signature
from fuzzing.worker import rng_of

COMPOSED_TRIES = 8
"""So many failures that read alike are reduced where only that tells them apart."""

HISTORY = 3000
"""So many cases before a failing one are tried as its cause."""


PROGRESS = "progress.state"
"""File of a campaign's counts, beside its findings."""


@dataclass
class Finding:
    """One defect, as far as can be told from outside."""

    area: str
    machine: str
    signature: str
    cases: list[Case]
    failure: Failure
    seed: int
    number: int
    reproduced: bool
    code: str = ""
    comment: str = ""
    alike: set[str] = field(default_factory=set)

    def document(self) -> dict[str, Any]:
        """What files hold."""
        return {k: v for k, v in vars(self).items() if k not in ("alike", "code")}


@dataclass
class Campaign:
    """Runs areas by turns.

    Attributes:
        areas: what to try.
        seconds: for all of it.
        seed: that of the last batch so far; the next ones count up.
        jobs: batches at a time.
        folder: where findings are written.
        cases: most cases of each area.
        batch: seconds of one batch, and so of one process.
        reduction: seconds for making one finding small.
    """

    areas: list[Area]
    seconds: float
    seed: int
    jobs: int = 1
    folder: Path | None = None
    cases: int = 1 << 62
    batch: float = 60.0
    reduction: float = 60.0
    findings: dict[str, Finding] = field(default_factory=dict)
    alike: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    trials: Counter[str] = field(default_factory=Counter)
    more: Counter[str] = field(default_factory=Counter)
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    batches: Counter[str] = field(default_factory=Counter)
    stopping: threading.Event = field(default_factory=threading.Event)
    errors: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Until time or cases are used up, or `stopping` is set."""
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self._seeds: dict[str, int] = {}
        self._planned: Counter[str] = Counter()
        threads = [threading.Thread(target=self._serve) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # in short steps: signals are handled between them
                thread.join(0.2)
        if self.errors:
            raise self.errors[0]

    def left(self) -> float:
        """Seconds until the campaign ends."""
        return 0.0 if self.stopping.is_set() else self.seconds - (time.monotonic() - self._begin)

    def _serve(self) -> None:
        try:
            while self.left() > 0 and (chosen := self._choose()) is not None:
                self._run_batch(*chosen)
        except BaseException as error:  # of the campaign itself; shown by `run`
            self.errors.append(error)
            self.stopping.set()

    def _choose(self) -> tuple[Area, str, int, int] | None:
        """The area that has had least of its share, how it uses machine code now, a seed, and how many cases."""
        with self._lock:
            open_ = [a for a in self.areas if self._planned[a.name] < self.cases]
            if not open_:
                return None
            area = min(open_, key=lambda a: (self.spent[a.name] / a.share, self.batches[a.name]))
            turns = [(m, k == 0) for each in area.rounds for k, m in enumerate(each)]
            turns = turns or [(m, True) for m in area.machines]
            machine, new = turns[self.batches[area.name] % len(turns)]
            if new:
                self.seed += 1
                self._seeds[area.name] = self.seed
            rounds = len(area.machines) if self.cases < 1 << 62 else 1
            cases = min(-(-self.cases // rounds), self.cases - self._planned[area.name], area.group or self.cases)
            self._planned[area.name] += cases if self.cases < 1 << 62 else 0
            self.batches[area.name] += 1
            self.spent[area.name] += 1e-3  # another job chooses another area meanwhile
            return area, machine, self._seeds[area.name], cases

    def _run_batch(self, area: Area, machine: str, seed: int, cases: int) -> None:
        begin, new = time.monotonic(), []
        first = trials = 0
        more: Counter[str] = Counter()
        while first < cases:  # again after the case in which a process died
            left = (max(1.0, self.left()) if area.group else min(self.batch, max(1.0, self.left()))) - (
                time.monotonic() - begin
            )
            request = {"area": area.name, "seed": seed, "seconds": left, "cases": cases, "first": first}
            try:
                with Process(machine, area.patience, self.stopping) as process:
                    try:
                        for reply in process.ask(request):
                            if "number" in reply:
                                new.append((reply["number"], reply["failure"]))
                        first, trials = reply["count"], trials + reply["trials"]
                        more.update(reply["counts"])
                        break
                    except (Gone, Stopped) as end:
                        first, trials = process.number + 1, trials + process.trials + 1
                        if isinstance(end, Stopped):
                            break
                        new.append((end.number, end.failure))
                        if end.failure["kind"] == "Hang" or left < 2.0:
                            break
            except Stopped:  # before it began
                break
        took = time.monotonic() - begin
        with self._lock:
            self.counts[area.name] += first
            self.trials[area.name] += trials
            self.spent[area.name] += took
            self.more.update({f"{area.name}, {machine}: {name}": number for name, number in more.items()})
            self.more[f"{area.name}, {machine}: cases"] += first
        rate = f"{first} cases, {trials} trials, {trials / took:.0f} per s"
        print(f"{area.name:12} {machine:8} seed {seed}: {rate}", flush=True)
        for number, failure in new:
            self._note(area, machine, seed, number, failure)
        self._keep()

    def _keep(self) -> None:
        """Write what a later campaign continues with."""
        if self.folder is None:
            return
        with self._lock:
            known = {"seed": self.seed, "counts": self.counts, "trials": self.trials, "more": self.more}
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self.folder / "progress.new"
            new.write_text(json.dumps(known | {"alike": self.alike}, indent=1) + "\n")
            new.replace(self.folder / PROGRESS)

    def resume(self) -> None:
        """Continue after the last batch of an earlier campaign with the same folder."""
        if self.folder is None or not (self.folder / PROGRESS).exists():
            return
        known = json.loads((self.folder / PROGRESS).read_text())
        self.seed = known["seed"]
        for name in ("counts", "trials", "more", "alike"):
            getattr(self, name).update(known[name])

    def _note(self, area: Area, machine: str, seed: int, number: int, failure: Failure) -> None:
        """Reduce the first failures that read alike; reduced, they may be one finding or several."""
        case = area.draw(rng_of(seed, number))
        alike = signature(area.name, "" if area.composed else area.subject(case), failure)
        with self._lock:
            self.alike[alike] += 1
            if self.alike[alike] > (COMPOSED_TRIES if area.composed else 2):
                return
        finding = Finding(area.name, machine, alike, [case], failure, seed, number, False)
        self._reduce(area, finding)
        finding.signature = signature(area.name, area.subject(finding.cases[-1]), finding.failure)
        finding.code = code_of(area, finding)
        with self._lock:
            known = self.findings.setdefault(finding.signature, finding)
            known.alike.add(alike)
        if known is finding:
            print(text_of(finding), flush=True)
            if self.folder is not None:
                write(finding, self.folder)

    def _reduce(self, area: Area, finding: Finding) -> None:
        seed, number = finding.seed, finding.number
        history = [area.draw(rng_of(seed, i)) for i in range(max(0, number - HISTORY), number)]
        reducer = Reducer(area, finding.machine, self.reduction, self.stopping)
        try:
            reduced = reducer.reduce(history, finding.cases[0], finding.failure)
        except Stopped:
            return  # it stays as large as it is
        finally:
            reducer.close()
        finding.cases, finding.failure, finding.reproduced = reduced

    def times(self, finding: Finding) -> int:
        """How many failures read like this finding."""
        return sum(self.alike[name] for name in finding.alike)


def code_of(area: Area, finding: Finding) -> str:
    """Programs of the cases, one after the other, under a line that says what they show."""
    lead = [f"# {line}" for line in finding.failure["text"].splitlines()[-6:]]
    if finding.machine != "with":
        setting = {
            "without": "TENFERRO_CPU_JIT=0",
            "always": "tenferro_runtime.lowering.native._program.is_worth_waiting = lambda *_: True",
            "quick": "of LLVM's level 0, which should not matter",
        }
        lead.append(f"# machine code {finding.machine}: {setting[finding.machine]}")
    return "\n".join([*lead, *[area.code(c) for c in finding.cases[-20:]]]) + "\n"


def text_of(finding: Finding) -> str:
    """A finding as the terminal shows it."""
    how = "" if finding.reproduced else " (seen once, not again)"
    head = f"FINDING {finding.signature}{how}\n  seed {finding.seed}, case {finding.number}, machine {finding.machine}"
    return head + "\n" + "\n".join(f"    {line}" for line in finding.code.splitlines()[:60])


def write(finding: Finding, folder: Path) -> None:
    """The finding as data, to replay, and as a program, to read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.area}-{finding.seed}-{finding.number}.json"
    path.write_text(json.dumps(finding.document(), indent=1) + "\n")
    path.with_suffix(".py.txt").write_text(finding.code)


def replay(path: Path, areas: dict[str, Area]) -> Failure | None:
    """What the cases of a file show now, in a new process."""
    document = json.loads(path.read_text())
    reducer = Reducer(areas[document["area"]], document["machine"], 0.0)
    try:
        return reducer.fails(document["cases"], alone=True)
    finally:
        reducer.close()
