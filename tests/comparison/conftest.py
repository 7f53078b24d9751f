import numpy as np
import pytest

from dpaa.comparison import Comparison, compare_entries
from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import Evaluator
from tests.comparison.tools import QUICK, entry, good_lists


@pytest.fixture(scope="module")
def evaluator(small_world: Dataset) -> Evaluator:
    return Evaluator(small_world, 10)


@pytest.fixture(scope="module")
def found(evaluator: Evaluator) -> Comparison:
    plain, good = (good_lists(evaluator, share, 0) for share in (0.1, 0.6))
    entries = [
        entry(evaluator, "plain", plain),
        entry(evaluator, "few", np.concatenate([good[:4], plain[4:]])),  # 4 users: p is at least 2/2⁴
        entry(evaluator, "good", *(good_lists(evaluator, 0.6, seed) for seed in (2, 3, 4))),
    ]
    return compare_entries(evaluator, entries, **QUICK)
