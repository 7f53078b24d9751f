"""Metrics of a trained method or a recommendation file (`Evaluator`), or of arrays (`measure_all`).

evaluator = Evaluator(data, k=20)
evaluator.evaluate(method).metrics["ndcg@20"]
evaluator.evaluate_recommendations(read_recommendations("recs.csv", data.user_ids, data.item_ids, 20))
"""

from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.evaluator import Evaluation, Evaluator
from dpaa.evaluation.metrics import Measured, measure_all
from dpaa.evaluation.recommendations import Recommendations, read_recommendations

__all__ = ["Evaluation", "Evaluator", "GroundTruth", "Measured", "Recommendations", "measure_all"]
__all__ += ["read_recommendations"]
