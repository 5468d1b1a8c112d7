"""Random functions run in every way there is, and all ways agree."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thorough import tries
from ways import WAYS, bits, sizes, xla
from written_programs import GROUPS, INPUTS, NAMES, Written, arguments, written_functions

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.optimised
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@settings(max_examples=tries(3, 12), suppress_health_check=SLOW_TO_DRAW)
@given(f=written_functions())
def test_a_random_function_gives_one_result(way, f: Written) -> None:
    way(f)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("way", [way for way in WAYS if way is not xla], ids=lambda way: way.__name__)
@settings(max_examples=tries(1, 30), suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_many_functions_of_one_kind_give_one_result(way, group: str, data) -> None:
    way(data.draw(written_functions(groups=(group, group, "element-wise", "two"))))


@pytest.mark.parametrize("group", GROUPS)
@settings(max_examples=tries(1, 30), suppress_health_check=SLOW_TO_DRAW)
@given(data=st.data())
def test_functions_of_one_kind_give_one_result_by_xla(group: str, data) -> None:
    """Few of them, which take long to compile; more with ``TENFERRO_THOROUGH=1``."""
    xla(data.draw(written_functions(groups=(group, group, "element-wise", "two"))))


@pytest.mark.parametrize(
    "lines",
    [("v = z[::2]", "u = wave(v, t)"), ("v = z.T", "u = wave(v, v)"), ("v = x[:, ::-1]", "u = weighted(wave(v, y))")],
)
def test_what_was_compiled_elsewhere_keeps_every_bit_in_a_deterministic_function(lines: tuple[str, ...]) -> None:
    """By itself it runs as a kernel of its own, which rounds otherwise for operands that lie in another way."""
    bits(Written(("x", "y", "z", "t"), lines, ("u",)))


def test_what_no_result_uses_does_not_run_in_a_program() -> None:
    """Of an empty array the mean is NaN, which `svdvals` refuses in calls on concrete values."""
    lines = "a = tr.mean(x, axis=0, keepdims=True)", "b = la.svdvals(apart(a))"
    sizes(Written(("x",), lines, ("a",)))
    sizes(Written(("x",), lines, ("b",)))


def test_every_line_that_may_be_written_runs_for_something() -> None:
    """A line that no operands fit would never be drawn."""
    inputs = tuple(INPUTS)
    values = dict(zip(inputs, arguments(inputs, 5, 7), strict=True)) | {"tall": arguments(("x",), 7, 5)[0]}
    for lines in GROUPS.values():
        for line in lines:
            fitting = 0
            for a in values:
                for b in values:
                    try:
                        eval(line.format(a, b), {**NAMES, **values})
                    except (TypeError, ValueError, IndexError):
                        continue
                    fitting += 1
            assert fitting >= 3, line
