"""The page of kernels on GPUs is what the registry and the simulated CuPy say."""

import gpu_table


def test_the_page_is_up_to_date():
    found = gpu_table.page()
    rows = [line for line in found.splitlines() if line.startswith("| `")]
    assert len(rows) > 300 and sum("| CPU |" in row for row in rows) < 80
    assert found == gpu_table.PAGE.read_text(encoding="utf-8"), "python3 dev run tests/support/gpu_table.py"


def test_every_primitive_without_a_kernel_has_a_reason():
    without = {name for row, name in gpu_table.places().items() if "| CPU |" in row}
    given = [name for names in gpu_table.REASONS.values() for name in names.split()]
    assert len(given) == len({*given}) and {*given} == without
