"""scikit-learn with array API dispatch: estimators, metrics and their helpers on tensors, beside NumPy's arrays."""

import pytest

from probing import check

pytestmark = pytest.mark.filterwarnings("ignore")  # scikit-learn's own, of classes without samples

KNOWN: dict[str, str] = {}
"""Probes that fail, with a part of what is said."""


@pytest.mark.parametrize("part", ["metrics", "estimators"])
def test_parts_agree_with_those_of_numpy(part: str) -> None:
    import sklearn

    from scipy_probes import leaves
    from sklearn_probes import PROBES

    probes = {name: probe for name, probe in PROBES.items() if name.partition(":")[0] == part}
    assert probes
    with sklearn.config_context(array_api_dispatch=True):
        check(probes, KNOWN, leaves, rtol=1e-5, atol=1e-7)
