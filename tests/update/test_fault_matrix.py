"""Every fault of the machine in every operation that writes.

Afterwards a search answers. The next run and a compaction end with the answers of a fresh index,
and embed nothing that was stored.
"""

from __future__ import annotations

import pytest
from fault_kit import FAULTS, MOUNTED, OPERATIONS, Machine

from tests.keyword_kit import ENGINES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with Machine(tmp_path_factory.mktemp("machine")) as running:
        yield running


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_next_run_ends_where_a_fresh_index_does(machine, fault, operation):
    if fault in MOUNTED and not machine.mounted:
        pytest.skip("needs the right to mount a small file system")
    if operation == "engine" and "tantivy" not in ENGINES:
        pytest.skip("needs tantivy")

    result = machine(fault, operation)

    assert result["wrong"] == []
    assert result["struck"]
