"""Refusals that cost no memory."""

import resource
from collections.abc import Callable

import pytest

from dpaa.errors import InputError


def little_memory(work: Callable[[], object]) -> str:
    """What an `InputError` says; the process may not have grown by more than 300 MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError) as refused:
        work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    return str(refused.value)
