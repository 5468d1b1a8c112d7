"""Acts on objects that no polite program does, in the midst of operations; a crash is the finding."""

import random
from collections.abc import Iterator

from fuzzing.area import WITH, Area, Case, halves


class Objects(Area):
    """Some steps of `object_fuzz`."""

    name = "objects"
    machines = (WITH,)

    def draw(self, rng: random.Random) -> Case:
        return {"seed": rng.randrange(1 << 31), "steps": list(range(rng.randint(1, 10)))}

    def trials(self, case: Case) -> int:
        return len(case["steps"])

    def run(self, case: Case) -> None:
        from object_fuzz import run

        run(case["seed"], 0, only=case["steps"])

    def shrink(self, case: Case) -> Iterator[Case]:
        yield from (case | {"steps": steps} for steps in halves(case["steps"]))

    def code(self, case: Case) -> str:
        return f"import object_fuzz\nobject_fuzz.run({case['seed']}, 0, only={case['steps']}, say=print)"
