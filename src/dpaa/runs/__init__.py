"""A run: a method fitted to a dataset, its folder, and the recommendations it gives; `fit.fit` is `dpaa.fit`."""

from dpaa.runs.fit import evaluate, final_training, fit_into, fit_method, make_method, plan_training, train_or_reuse
from dpaa.runs.folder import RunFolder, RunRecord, hold_folder, save_model
from dpaa.runs.lists import known_ids, read_limits, read_only
from dpaa.runs.measure import choose_dial, measured
from dpaa.runs.model import Model, load
from dpaa.runs.progress import Callbacks, watched_training
from dpaa.runs.stream import check_target, write_stream

__all__ = ["Callbacks", "Model", "RunFolder", "RunRecord", "check_target", "choose_dial", "evaluate", "final_training"]
__all__ += ["fit_into", "fit_method", "hold_folder", "known_ids", "load", "make_method", "measured", "plan_training"]
__all__ += ["read_limits", "read_only", "save_model", "train_or_reuse", "watched_training", "write_stream"]
