"""How large Adam's steps are: a function of the step alone, so that a resumed training goes on as it would have."""

from __future__ import annotations

from dpaa.methods.settings import TrainedSettings


def learning_rate_at(step: int, settings: TrainedSettings) -> float:
    """The learning rate of a step, counted from 1: `learning_rate · min(1, step / warmup_steps)`.

    Adam divides each gradient by its own size, so its first steps move every number by the whole learning rate,
    however small or noisy its gradient.  Small first steps keep that noise out of the tables.
    """
    if step >= settings.warmup_steps:
        return settings.learning_rate
    return settings.learning_rate * step / settings.warmup_steps
