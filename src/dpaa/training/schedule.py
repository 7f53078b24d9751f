"""How large Adam's steps are: a function of the step alone, so that a resumed training goes on as it would have."""

from __future__ import annotations

import math

from dpaa.methods.graph_method import GraphMethod


def learning_rate_at(step: int, method: GraphMethod) -> float:
    """The learning rate of a step, counted from 1: `learning_rate · min(step / w, √(w / step))`, w = `warmup_steps`.

    Adam divides each gradient by its own size, so its first steps move every number by the whole learning rate,
    however small or noisy its gradient: small first steps keep that noise out of the tables.  The fall afterwards
    (that of "Attention is all you need") needs no end of training to be known; `constant` leaves it out.
    """
    warmup = max(method.warmup_steps, 1)
    if step < warmup:
        return method.learning_rate * step / warmup
    if method.learning_rate_schedule == "constant":
        return method.learning_rate
    return method.learning_rate * math.sqrt(warmup / step)
