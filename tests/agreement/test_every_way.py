"""Random functions run in every way there is, and all ways agree."""

import pytest
from hypothesis import HealthCheck, given, settings

from ways import WAYS
from written_programs import GROUPS, Written, written_functions

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@settings(max_examples=12, suppress_health_check=SLOW_TO_DRAW)
@given(f=written_functions())
def test_a_random_function_gives_one_result(way, f: Written) -> None:
    way(f)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(f=written_functions())
def test_many_random_functions_give_one_result(way, group: str, f: Written) -> None:
    way(f)
