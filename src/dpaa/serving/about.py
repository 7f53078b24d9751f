"""What a service says of its run: to the live page, and to whoever wants to know what he is asking."""

from __future__ import annotations

from typing import Any

from dpaa.errors import InputError
from dpaa.ranking.registry import RERANKERS
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import Snapshot


def about(snapshot: Snapshot, settings: ServeSettings | None) -> dict[str, Any]:
    """Method, sizes, the dial with its curve, re-rankers and limits."""
    model = snapshot.model
    dataset = model.manifest.get("dataset")
    name = dataset.get("name") if isinstance(dataset, dict) else None
    own = model.reranker()
    place = model.path.parent if model.path is not None and "debias" in model.manifest else model.path
    found: dict[str, Any] = {
        "run": place.name if place is not None else str(name or snapshot.name),  # of a trade, whose run is called `run`
        "dataset": None if name is None else str(name),
        "method": model.method.name,
        "users": len(snapshot.users),
        "items": len(snapshot.items),
        "popular_items": int(snapshot.popular.sum()),
        "titles": snapshot.items.titles is not None,
        "similar": snapshot.unit is not None,
        "columns": model.columns.names,
        "dial": {"kappa": snapshot.kappa, "curve": curve(snapshot)},
        "rerank": None if own is None else own.in_words(),
        "rerankers": rerankers(),
        "snapshot": snapshot.name,
        "index": None if snapshot.index is None else {"kind": snapshot.index.kind, "recall": snapshot.index.recall},
    }
    if settings is not None:
        found["limits"] = {
            "k": settings.most_k,
            "people": settings.most_people,
            "ids": settings.most_ids,
            "bytes": settings.most_bytes,
        }
    return found


def curve(snapshot: Snapshot) -> list[dict[str, Any]] | None:
    """The dial's stored curve on validation; None where the run has none or it is damaged."""
    try:
        stored = snapshot.model.dial_curve
    except InputError:
        return None
    if stored is None:
        return None
    return [{"k": stored.k, **{name: _or_none(value) for name, value in point.items()}} for point in stored.per_kappa]


def rerankers() -> list[dict[str, Any]]:
    """Those that can be named in a request, with the settings that are numbers."""
    found = []
    for name in RERANKERS:
        try:
            kind = RERANKERS[name]
        except InputError:  # an installed plug-in that does not load
            continue
        numbers = []
        for setting, field in kind.model_fields.items():
            if isinstance(field.default, bool) or not isinstance(field.default, int | float):
                continue
            least, most = _ends(field.metadata, field.default)
            numbers.append(
                {
                    "name": setting,
                    "default": field.default,
                    "least": least,
                    "most": most,
                    "meaning": field.description or "",
                }
            )
        found.append({"name": name, "title": kind.title, "settings": numbers})
    return found


def _ends(rules: list[Any], default: float) -> tuple[float, float]:
    """Where a slider ends: at the setting's own bounds, just inside of those that it must not reach."""
    bounds = {edge: getattr(rule, edge) for rule in rules for edge in ("ge", "gt", "le", "lt") if hasattr(rule, edge)}
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    least: float = -2 if low is None else low
    most: float = high if high is not None else 2 if low is None else max(least + 1, 2 * default)
    inside = (most - least) / 20
    return least + (inside if "gt" in bounds else 0), most - (inside if "lt" in bounds else 0)


def _or_none(value: float) -> float | None:
    return None if value != value else value
