"""Random programs of views, writes and exports against NumPy's, in every mode: a sample of the fuzz area `views`."""

import pytest

import tenferro_runtime as tr
from fuzzing import views
from fuzzing.worker import failure, rng_of

SAMPLE = {
    "concrete": 400, "exports": 150, "vjp": 30, "variable": 12, "jvp": 20, "vmap": 20, "compiled": 4, "open": 4,
    "deterministic": 2, "donated": 2, "compiled gradient": 3, "loop": 3, "branch": 3,
}  # fmt: skip
"""Programs by mode; a few seconds in all."""


@pytest.mark.parametrize("mode", SAMPLE)
def test_random_programs(mode):
    area = views.Views()
    for number in range(SAMPLE[mode]):
        case = views.draw(rng_of(21, number), mode)
        found = failure(area, case)
        assert not found, f"{found['text']}\n{area.code(case)}"
    refused = sum([n for name, n in area.counts.items() if name.startswith("refused")])
    assert refused <= SAMPLE[mode] // 4, area.counts


def test_every_mode_has_a_sample():
    assert set(SAMPLE) == set(views.MODES) - {"model"}


@pytest.mark.parametrize("mode", ["concrete", "vjp", "vmap"])
def test_a_view_without_a_link_is_found(monkeypatch, mode):
    """A function whose result should be a view and is a copy."""
    right = tr.reshape
    monkeypatch.setattr(tr, "reshape", lambda x, shape: right(x, shape).copy())
    area = views.Views()
    cases = [views.draw(rng_of(22, number), mode) for number in range(150)]
    assert any(failure(area, c) for c in cases if any("xp.reshape" in text for text in c["lines"]))
