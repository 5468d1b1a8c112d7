"""The sampler of the example: its trees, what it says of its samples, and a posterior that is known."""

from pathlib import Path

import numpy as np
import pytest

import example_programs
import tenferro_runtime as tr

nuts = example_programs.load("nuts")


def test_subtrees_end_where_numbers_end_in_ones() -> None:
    assert [int(nuts.trailing_ones(tr.asarray(n))) for n in (0, 1, 2, 3, 5, 7, 11, 15, 23)] == [
        0,
        1,
        0,
        2,
        1,
        3,
        2,
        4,
        3,
    ]


def test_energy_is_kept_and_time_can_be_reversed() -> None:
    """A tree of small steps, and the one back from its end."""
    force = lambda q: (0.5 * tr.sum(q * q), q)
    q, p, unit, key = tr.asarray([1.0, 0.0]), tr.asarray([0.0, 0.5]), tr.ones(2), tr.random.key(0)
    energy, depth = tr.asarray(0.625), tr.asarray(3)
    there = nuts.subtree(force, key, (q, p, q), tr.asarray(0.01), unit, energy, depth, 4)
    assert int(there["leaf"]) == 8 and not bool(there["stop"])
    end, momentum, _ = there["end"]
    assert abs(0.5 * float(tr.sum(end * end + momentum * momentum)) - 0.625) < 1e-5
    np.testing.assert_allclose(np.asarray(end), [np.cos(0.08), 0.5 * np.sin(0.08)], atol=1e-5)
    back = nuts.subtree(force, key, there["end"], tr.asarray(-0.01), unit, energy, depth, 4)
    np.testing.assert_allclose(np.asarray(back["end"][0]), np.asarray(q), atol=1e-13)


def test_a_tree_stops_where_it_turns() -> None:
    force = lambda q: (0.5 * tr.sum(q * q), q)
    q, p = tr.asarray([0.0]), tr.asarray([1.0])
    out = nuts.subtree(
        force, tr.random.key(0), (q, p, q), tr.asarray(0.5), tr.ones(1), tr.asarray(0.5), tr.asarray(5), 6
    )
    assert bool(out["stop"]) and not bool(out["diverged"]) and int(out["leaf"]) < 32


def test_effective_numbers() -> None:
    rng = np.random.default_rng(0)
    independent = rng.normal(size=(4, 5000))
    count, reduction = nuts.effective(independent)
    assert count == pytest.approx(20_000, rel=0.1) and reduction == pytest.approx(1, abs=0.002)
    walk = np.zeros((4, 5000))
    for k in range(1, 5000):
        walk[:, k] = 0.9 * walk[:, k - 1] + rng.normal(size=4)
    assert nuts.effective(walk)[0] == pytest.approx(20_000 * 0.1 / 1.9, rel=0.25)
    assert nuts.effective(independent + np.arange(4)[:, None])[1] > 1.2


def test_a_posterior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rates.png"
    assert nuts.main(["rates", "--samples", "250", "--warmup", "200", "--out", str(out)]) == 0
    assert out.stat().st_size > 10_000
    assert "rate" in capsys.readouterr().out


def test_bad_options(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["dice"], ["rates", "--chains", "1"]):
        with pytest.raises(SystemExit):
            nuts.main(options)
    assert "no posterior 'dice'" in capsys.readouterr().err
