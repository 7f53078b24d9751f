"""An audit in plain sentences."""

from __future__ import annotations

import pytest

from dpaa.auditing.sentences import moments


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1700000000, 1700000001], ["2023-11-14 22:13:20", "2023-11-14 22:13:21"]),
        ([1700000000000.0], ["2023-11-14 22:13:20"]),
        ([1700006400000000], ["2023-11-15"]),
        ([1700006400000000000, 1700000000000000000], ["2023-11-15 00:00:00", "2023-11-14 22:13:20"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T00:00:00+00:00"], ["2024-05-01", "2024-05-02"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T10:30:00+00:00"], ["2024-05-01 00:00:00", "2024-05-02 10:30:00"]),
        ([20240131, 20240201], ["20240131", "20240201"]),
        ([3, 1700000000], ["3", "1700000000"]),
        ([0.5], ["0.5"]),
        ([], []),
    ],
)
def test_times_for_people(times: list[str | float], said: list[str]) -> None:
    """Seconds, milli-, micro- and nanoseconds since 1970 are dates; other numbers stay what they are."""
    assert moments(times) == said
