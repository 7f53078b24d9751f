"""A pool of processes, of which one is killed."""

from __future__ import annotations

import os

import pytest

from dpaa.errors import InputError
from dpaa.tuning.processes import in_pool


def test_a_worker_that_is_killed_ends_the_pool_in_one_sentence() -> None:
    with pytest.raises(InputError, match="a training process was killed; call again with fewer --jobs"):
        list(in_pool(os._exit, [(1,), (1,)], 2))
