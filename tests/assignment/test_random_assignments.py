"""Random assignments against NumPy's, in every mode; `assignment_fuzz` runs as many as one likes."""

import pytest

from assignment_fuzz import main


@pytest.mark.parametrize("block", range(4))
def test_random_assignments(block):
    main(150, 150 * block)
