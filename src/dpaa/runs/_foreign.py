"""Another system's recommender: a `Model` from lists or vectors, and recipes from choices of `dpaa debias`.

A recipe is a small JSON file: the popularity dial and the re-ranker over a system's own scores.  A team keeps its
system and re-ranks what that recommends, batch by batch.
"""

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._io import SMALL_JSON, check_regular, read_json
from dpaa._machine import memory_at_hand
from dpaa.data.dataset import Dataset
from dpaa.data.ids import check_ids, encode
from dpaa.errors import InputError, need_whole, reason
from dpaa.evaluation.dial_curve import NO_CURVE, active_kappa
from dpaa.evaluation.recommendations import Recommendations, read_recommendations, rerank_file
from dpaa.methods.base import Method
from dpaa.methods.given import MOST_ITEMS, GivenLists, GivenVectors
from dpaa.ranking.reranker import stored_reranker
from dpaa.runs.fit import fit_method, make_method
from dpaa.runs.lists import Ids
from dpaa.runs.measure import need_dataset
from dpaa.runs.model import Model

KIND, FORMAT = "recipe", 1
RECIPE = "recipe.json"
"""Its file in the folder of `dpaa debias`."""
PROMISED = ("dataset", "k", "goals", "estimates", "why", "headline", "sentences", "promise")
"""What it keeps of `frontier.json`."""
LISTS, ALL = "lists", "all items"
"""What a recipe's dial and re-ranker were chosen over."""
ARRAYS = ("users", "items", "user_ids", "item_ids")
"""Of an `.npz` file: two tables of vectors, and the ids of their rows."""
BROKEN = (KeyError, ValueError, OSError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading a damaged or hostile one raises."""
MOST_SHORT, LARGEST_SCORE = 0.5, 1e38
"""Share of the lists that may be shorter than wanted, for a re-ranker to have a choice; and what float32 can hold."""


def given(source: Any, data: Dataset, *, user_ids: Ids | None = None, item_ids: Ids | None = None, k: int = 1) -> Model:
    """Take another system's lists or vectors as a model.

    Parameters
    ----------
    source : lists, as a frame or a file with user_id, item_id and score (about 100 items for each user); or vectors
        whose inner products are the scores: an `.npz` file with the arrays users, items, user_ids and item_ids, a pair
        of arrays, or an object with `user_factors` and `item_factors` such as a model of `implicit`; instead of the
        items' array a FAISS index
    data : the dataset
    user_ids, item_ids : of the rows of vectors that are not in a file
    k : wanted length of lists; refused where more than half of the given ones have fewer new items for their user

    Returns
    -------
    the model; `manifest["given"]` says what was left out.  Items without a score are never listed
    """
    need_dataset(data)
    name = Path(source).name if isinstance(source, str | Path) else "the vectors"
    if isinstance(source, str | Path) and Path(source).suffix.lower() == ".npz":
        *source, user_ids, item_ids = _read_arrays(Path(source))
    elif hasattr(source, "user_factors"):
        source = (source.user_factors, source.item_factors)
    if isinstance(source, tuple | list):
        method, notes = _of_vectors(source, data, (user_ids, item_ids), name)
    else:
        recs = read_recommendations(source, data.user_ids, data.item_ids, with_scores=True)
        (method, notes), name = _of_lists(recs, data, need_whole(k, "k")), recs.name
    return fit_method(method, data, dial=False, about={"given": {"source": name, "notes": notes}})


def _of_lists(recs: Recommendations, data: Dataset, k: int) -> tuple[Method, list[str]]:
    assert recs.scores is not None
    there = recs.scores > -np.inf
    if np.abs(recs.scores[there]).max() > LARGEST_SCORE or data.n_items > MOST_ITEMS:
        raise InputError(
            f"{recs.name}: scores may be up to {LARGEST_SCORE:g} and items {MOST_ITEMS:,}; scale the scores"
        )
    keys = recs.users[:, None].astype(np.int64) * data.n_items + recs.items
    short = ((there & ~np.isin(keys, data.train.keys(data.n_items))).sum(axis=1) < k).mean()
    says = f"{recs.name}: {short:.0%} of the lists have fewer than {k:,} items that are new to their user"
    if short > MOST_SHORT:
        raise InputError(f"{says}; provide longer ones, about 100 items each")
    without = int((~np.isin(np.unique(data.train.user), recs.users)).sum())
    notes = [*recs.notes, *([f"{recs.name}: {without:,} users with training pairs have no list"] if without else [])]
    lengths = np.zeros(data.n_users)
    lengths[recs.users] = there.sum(axis=1)
    state = {"lengths": lengths, "listed": recs.items[there], "scores": recs.scores[there]}
    return _holding(make_method(data, GivenLists, {"entries": int(there.sum())}), state), notes + [says] * bool(short)


def _of_vectors(tables: Any, data: Dataset, ids: tuple[Any, Any], name: str) -> tuple[Method, list[str]]:
    if len(tables) != 2 or any(column is None for column in ids):
        raise InputError(f"{name} must be two tables, of users and items, with the user_ids and item_ids of their rows")
    aligned, notes = [], []
    for what, table, own, known in zip(("user", "item"), tables, ids, (data.user_ids, data.item_ids), strict=True):
        array, values = _as_array(table, f"{name}: the {what} vectors"), check_ids(own, known, what)
        if len(values) != len(array) or not values.is_unique().all():
            raise InputError(f"{name}: {len(array):,} {what} vectors need as many ids, got {values.n_unique():,}")
        index = encode(values, known)
        if (index < 0).all():
            raise InputError(f"{name}: no {what} is in the dataset ({known[0]!r}, not {values[0]!r}); check the ids")
        # Zeros where the system has no vector: `GivenVectors` never lists those.
        rows = np.zeros((len(known), array.shape[1]), dtype=np.float32)
        rows[index[index >= 0]] = array[index >= 0]
        aligned.append(rows)
        if missing := int((~rows.any(axis=1)).sum()):
            notes.append(f"{name}: {missing:,} of {len(known):,} {what}s have no vector, and so no score")
    if len(widths := {rows.shape[1] for rows in aligned}) > 1:
        raise InputError(f"{name}: those of users and items have {sorted(widths)} columns; give as many to both")
    method = make_method(data, GivenVectors, {"embedding_size": widths.pop()})
    return _holding(method, dict(zip(("user_vectors", "item_table"), aligned, strict=True))), notes


def _holding(method: Method, state: Mapping[str, NDArray[Any]]) -> Method:
    method.load_state({name: torch.from_numpy(values.astype(np.float32)) for name, values in state.items()})
    return method


def _as_array(table: Any, name: str) -> NDArray[np.float32]:
    """A table of anything that holds one: numpy, torch, a FAISS index, factors on a GPU."""
    table = table.reconstruct_n(0, table.ntotal) if hasattr(table, "reconstruct_n") else table
    try:
        array = np.asarray(table.to_numpy() if hasattr(table, "to_numpy") else table, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are no numbers ({reason(error)}); give a table with a row for each") from None
    if array.ndim != 2 or not array.shape[1] or not np.isfinite(array).all():
        raise InputError(f"{name} must be a table of finite numbers with a row for each, got shape {array.shape}")
    return array


def _read_arrays(file: Path) -> list[NDArray[Any]]:
    """The arrays of an untrusted file: nothing pickled, nothing larger than half of the memory at hand."""
    check_regular(file)
    try:
        # Sizes from the archive's directory, before anything is unpacked: a small file may hold terabytes of
        # zeros.
        with zipfile.ZipFile(file) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > memory_at_hand() / 2:
            raise ValueError(f"{size / 1e9:,.1f} GB, more than half of the memory at hand")
        with np.load(file, allow_pickle=False) as arrays:
            return [arrays[name] for name in ARRAYS]
    except BROKEN as error:
        how = f"numpy.savez with the arrays {', '.join(ARRAYS)}, ids as numbers or text"
        raise InputError(f"{file} cannot be read ({reason(error)}); write it with {how}") from None


# ------------------------------------------------------------------ recipes


def recipe_of(content: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Describe a choice of `dpaa debias` so that it can be applied to the lists of its model.

    Parameters
    ----------
    content : of `frontier.json`
    model : that the chosen point is over

    Returns
    -------
    content of `recipe.json`
    """
    about = {"kind": KIND, "format": FORMAT, "scores": LISTS if isinstance(model.method, GivenLists) else ALL}
    about |= {name: content["chosen"][name] for name in ("model", "popularity_dial", "rerank")}
    return about | {name: content[name] for name in PROMISED if name in content}


def rerank(
    source: Any,
    recipe: str | Path | Mapping[str, Any],
    data: Dataset,
    k: int | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> pl.DataFrame:
    """Re-rank lists by a recipe of `dpaa debias`, for any batch of users.

    Parameters
    ----------
    source : lists, as a frame or a file with user_id, item_id and score; or a model
    recipe : the file, or its content
    data : where popularity and histories come from
    k : length of the new lists; default: the recipe's
    say : receives notes, such as on unknown ids

    Returns
    -------
    `user_id, item_id, score, rank`; training items of the user are left out
    """
    content = recipe if isinstance(recipe, Mapping) else read_json(recipe, SMALL_JSON, "make it again with dpaa debias")
    if content.get("kind") != KIND or content.get("format") != FORMAT:
        raise InputError(f"not a recipe of format {FORMAT} but {content.get('kind')!r}; give one of dpaa debias")
    kappa = active_kappa(NO_CURVE | {"kappa": content.get("popularity_dial")})
    reranker = stored_reranker(content.get("rerank"), "the recipe")
    k = need_whole(content.get("k") if k is None else k, "k")
    if content.get("dataset") != data.identity:
        say(f"the recipe was chosen on other data than {data.name}, or on another state of it")
    if isinstance(source, Model):
        return source.recommend(k=k, popularity_dial=kappa, rerank=reranker)
    if content.get("scores") != LISTS and (kappa or getattr(reranker, "depth", None) == "all"):
        model = f"the recipe was chosen over the scores of all items of {content.get('model')}, which lists do not have"
        raise InputError(f"{model}; re-rank that model, or bring its lists to dpaa debias")
    blocks, notes = rerank_file(source, data, reranker, k, kappa=kappa)
    for note in notes:
        say(note)
    return pl.concat(blocks)
