"""The run folder: config, manifest, history, tensors and tables; nothing pickled, every file replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import dpaa
from dpaa._io import (
    LARGE_JSON,
    SMALL_JSON,
    Content,
    append_line,
    as_json,
    check_folder_name,
    check_regular,
    check_replaceable,
    digest,
    is_staging,
    lock_of,
    locked,
    missing_folders,
    own_folder,
    put_in_place,
    read_json,
    read_text,
    remove_empty,
    remove_folder,
    settled,
    sweep,
    whole_folder,
    write_file,
    write_files,
)
from dpaa._text import finite, parse_json
from dpaa.data.attributes import ATTRIBUTES_FILE, ItemAttributes, read_attributes
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset, checked_counts, read_dataset
from dpaa.data.ids import checked_type, look_up
from dpaa.data.pairs import Pairs
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.popularity import popular_items
from dpaa.errors import DivergedError, InputError, reason
from dpaa.evaluation.dial_curve import DialCurve, kappa_in_force
from dpaa.evaluation.evaluator import Evaluation, Protocol
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.methods import METHODS
from dpaa.methods.base import Method, attach
from dpaa.methods.graph_method import GraphMethod, with_earlier_defaults
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.training.checkpoint import CheckpointFolder
from dpaa.training.trainer import EpochReport, Interrupted

CONFIG, MANIFEST, HISTORY, TENSORS = "config.json", "manifest.json", "history.jsonl", "model.safetensors"
USERS, ITEMS, EDGES = "users.parquet", "items.parquet", "edges.parquet"
METRICS, PER_USER = "metrics.json", "per_user.parquet"
GROUP, CANDIDATE, RECENT = "group", "candidate", "recent_popularity"
FRONTIER, CHOSEN = "frontier.json", "run"
"""What `dpaa debias` writes into its folder: such a folder stands for the run in it."""
BOUND = (CONFIG, HISTORY, TENSORS, USERS, ITEMS, EDGES, ATTRIBUTES_FILE)
"""Files whose digests are in the manifest: those of another run, or of another training, are refused."""
FORMAT = 1
DISK_FULL = "make room or choose another folder with --out"
AGAIN = "restore it or train again"


# ------------------------------------------------------------------ what the files hold


class _Checked(BaseModel):
    """A file may come from anywhere: fields that are relied on have these types, others may hold anything."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class TrainedOn(_Checked):
    """The dataset of a run: its content and where it was."""

    name: str | None = None
    fingerprint: str | None = None
    path: str | None = None

    def read(self, run: Path) -> Dataset:
        """The dataset, if it is still at its path; else the call has to name it."""
        if not self.path:
            raise InputError(f"{run} does not say where its dataset is; name it with --dataset")
        if not Path(self.path).exists():
            raise InputError(f"the dataset of {run} is no longer at {self.path}; name it with --dataset")
        return read_dataset(self.path)


class Manifest(_Checked):
    """`manifest.json`."""

    dataset: TrainedOn
    files: dict[str, str] = {}
    """Digests of the run's other files; empty in runs made before files were bound."""


class _Measured(_Checked):
    """`metrics.json`."""

    metrics: dict[str, Any]
    protocol: dict[str, Any]
    model: str | None = None
    """Digest of the model that was measured; None in files made before models were bound."""


class _Epoch(_Checked):
    """A line of `history.jsonl`; numbers are bounded, for one far outside would make a figure of any size."""

    epoch: int = Field(ge=0, lt=2**31)
    loss: float | None
    valid: dict[str, float | None]
    learning_rate: float | None = Field(default=None, ge=0)
    embedding_shift: float | None = Field(default=None, ge=0)
    pretrained_share: float | None = Field(default=None, ge=0, le=1)
    iiw_by_decile: list[Annotated[float, Field(ge=-0.01, le=2.01)] | None] | None = Field(
        default=None, min_length=10, max_length=10
    )
    """Means of 1 − cosine, rounded."""


WRONG = {"dataset": "does not say what its dataset is", "files": "has no list of files"}
"""Field of a manifest → what is wrong with the file where the field is missing or of another type."""


def _history_line(text: str) -> dict[str, Any]:
    content = parse_json(text)
    if not isinstance(content, dict):
        raise ValueError("a line is no JSON object")
    try:
        _Epoch.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where, message = ".".join(map(str, first["loc"])), f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ValueError(f"{where}: {message}" if where else message) from None
    return content


@dataclass(frozen=True, eq=False)
class RunRecord:
    """All that is written to a run folder and read from it; `Model` adds what can be done with it."""

    method: Method
    user_ids: pl.Series
    """Row i = index i, ascending."""
    item_ids: pl.Series
    train: Pairs
    """Training pairs: what a user has already seen."""
    candidates: NDArray[Any] | None = None
    """Items that may be recommended; None = all."""
    manifest: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    edges: Path | None = None
    """File with the message weights of a loaded run."""
    attributes: ItemAttributes | None = None
    """What is known of the items: titles, and any other columns."""
    digest: str | None = None
    """SHA-256 of the file that its tensors were read from or written to; None for a model in memory alone."""
    popularity: NDArray[Any] | None = None
    """Recent popularity of the items (`Dataset.recent_popularity`); None where the log has no times."""

    @property
    def titles(self) -> pl.Series | None:
        """Titles of the items, row i = index i; None where there are none."""
        return None if self.attributes is None else self.attributes.titles

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, with `title` and whatever else is known of it."""
        return (self.attributes or ItemAttributes(pl.DataFrame())).with_ids(self.item_ids)

    @property
    def trained_on(self) -> TrainedOn:
        """The dataset, as the manifest has it."""
        return TrainedOn.model_validate(self.manifest.get("dataset", {}))

    @property
    def vectors_digest(self) -> str:
        """Digest of ids and trained tensors: two models with the same one start the same training."""
        content = hashlib.sha256()
        for ids in (self.user_ids, self.item_ids):
            content.update("\n".join(map(str, ids.to_list())).encode())
        for tensor in self.method.state().values():
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()

    def makes_lists_of(self, protocol: Protocol) -> bool:
        """Whether an evaluation is of the model's own lists: its popularity dial and re-ranker, no others."""
        reranker = stored_reranker(self.manifest.get("rerank"), self.path or self)
        kappa = kappa_in_force(self.manifest.get("dial"))
        return (protocol.popularity_dial, protocol.rerank) == (kappa, reranker.in_words() if reranker else None)

    def check_trained_on(self, data: Dataset, remedy: str) -> None:
        """Refuse another dataset than the model's."""
        if self.trained_on.fingerprint != data.fingerprint:
            raise InputError(
                f"the model was trained on another dataset than {data.name} (fingerprints differ); {remedy}"
            )


# ------------------------------------------------------------------ the folder


class RunFolder:
    """One run on disk.

    Parameters
    ----------
    path : the folder; that of `dpaa debias` stands for the run that it chose
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if stands_for_run(self.path):
            self.path /= CHOSEN
        self.checkpoints = CheckpointFolder(self.path / "checkpoint")

    @classmethod
    @contextmanager
    def begin(cls, path: str | Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[RunFolder]:
        """Open a folder to write a run into, locked against other processes.

        A run that fails without a checkpoint is removed again.

        Parameters
        ----------
        path : the folder
        overwrite : whether a run there may be replaced.  It stays until the new run is whole, which is written to
            `.NAME.unfinished` beside it and takes its place in one rename
        resume : continue the unfinished run that is there
        """
        target = check_folder_name(path)
        created = missing_folders(target)
        try:
            with hold_folder(target, path):
                run = cls._claim(Path(path), target, overwrite, resume)
                begun = run.filled
                try:
                    yield run
                    run._commit(target)
                except Exception as error:
                    # A finished run that could not be put in its place is kept, too.
                    kept = begun or run.checkpoints.file.exists() or run.finished or isinstance(error, Interrupted)
                    if isinstance(error, DivergedError) or not kept:
                        remove_folder(run.path)
                    raise
        except Exception as error:
            if not isinstance(error, Interrupted):
                remove_empty(created)
            raise

    @classmethod
    def _claim(cls, shown: Path, target: Path, overwrite: bool, resume: bool) -> RunFolder:
        """The folder to write to, with the lock held."""
        if target.exists() and not target.is_dir():
            raise InputError(f"{shown} is a file; choose another folder with --out")
        _check_no_frontier(target, shown)
        own_folder(target, DISK_FULL)
        current, staged = cls(target), cls._staged(target)
        if not current.filled:
            return current
        if not current.has_config:
            raise InputError(f"{shown} holds something else than a run; choose another folder with --out")
        if current.finished:
            current.remove_scaffold()  # of a process that was killed in its last moment
        resume_staged = resume and overwrite and staged.path.exists()
        if resume and not current.finished and not resume_staged:
            return current
        if overwrite:
            check_replaceable(target, shown)
            staged._prepare(keep=resume_staged and not staged.finished)
            return staged
        waits = "a run to replace it is unfinished, continue with --resume --overwrite"
        also = f"; {waits}" if staged.path.exists() else ""
        if current.finished:
            raise InputError(
                f"{shown} holds a finished run; pass --overwrite or choose another folder with --out{also}"
            )
        raise InputError(f"{shown} holds an unfinished run; continue with --resume or pass --overwrite{also}")

    def _prepare(self, keep: bool) -> None:
        """Make the folder for a run that is to replace another; what is in it stays (`keep`) or goes."""
        if self.filled and not self.has_config:
            raise InputError(
                f"{self.path}, where the new run would be made, holds something else than a run; move it away"
            )
        own_folder(self.path, DISK_FULL)
        for file in () if keep else self.path.iterdir():
            remove_folder(file) if file.is_dir() else file.unlink(missing_ok=True)  # or swept by then

    @classmethod
    def _staged(cls, target: Path) -> RunFolder:
        """Where a run that is to replace another is written."""
        return cls(target.parent / f".{target.name}.unfinished")

    def _commit(self, target: Path) -> None:
        """Put the whole run in its place; what it replaces goes."""
        self.remove_scaffold()
        if self.path != target:
            try:
                put_in_place(self.path, target)
            except OSError as error:
                raise InputError(
                    f"cannot put the new run in the place of {target} ({reason(error)}); it waits in {self.path}, "
                    "move it to a folder of its own"
                ) from None
            remove_folder(self.path)

    def finished_before(self, method: Method, fingerprint: str, rerank: Reranker | None = None) -> bool:
        """Whether this is a whole run with this method, hyperparameters and re-ranker on this dataset.

        So a training that was killed in its last moment, when all was written, can be resumed like any other.
        """
        if not RunFolder(settled(self.path)).finished:
            return False
        self.tidy()
        config, (manifest, about) = self.read_json(CONFIG), self.read_manifest()
        made_with = with_earlier_defaults(type(method), config)
        same = all(made_with.get(name) == value for name, value in _config(method).items() if name != "threads")
        same_lists = stored_reranker(manifest.get("rerank"), self.path) == rerank
        return same and same_lists and about.dataset.fingerprint == fingerprint

    @classmethod
    def to_resume(cls, path: str | Path, overwrite: bool) -> RunFolder | None:
        """The unfinished run that `begin` with `resume` would continue; None where there is none."""
        target = settled(path)
        runs = [cls._staged(target), cls(target)] if overwrite else [cls(target)]
        return next((run for run in runs if run.has_config and not run.finished), None)

    @classmethod
    def to_finish(cls, path: str | Path, overwrite: bool) -> RunFolder:
        """The unfinished run, with a checkpoint, whose best epoch so far can be kept.

        Parameters
        ----------
        path : the run folder
        overwrite : whether a run that is to replace the one in this folder is meant too
        """
        run, target = cls.to_resume(path, overwrite), settled(path)
        if run is None and cls(target).finished:
            staged = cls._staged(target).has_config and not overwrite
            other = "finish the run that is to replace it with --finish --overwrite"
            raise InputError(f"{path} is finished already; {other if staged else 'there is nothing to finish'}")
        if run is None:
            raise InputError(f"there is no unfinished run in {path}; check the path, or train without --finish")
        if not run.checkpoints.file.exists():
            raise InputError(f"{path} has no checkpoint to take its best epoch from; continue with --resume")
        return run

    def remove_scaffold(self) -> None:
        """Remove the checkpoint and what a killed process left half written."""
        self.checkpoints.remove()
        sweep(self.path)

    def tidy(self) -> None:
        """Complete a finished run whose process was killed in its last moment."""
        with hold_folder(settled(self.path), self.path):
            self.remove_scaffold()

    @property
    def filled(self) -> bool:
        """Whether anything is in the folder but what a killed process left half written."""
        return self.path.is_dir() and any(not is_staging(file) for file in self.path.iterdir())

    @property
    def finished(self) -> bool:
        """Whether the manifest, which is written last, is there."""
        return (self.path / MANIFEST).exists()

    @property
    def has_config(self) -> bool:
        """Whether the config, which is written first, is there."""
        return (self.path / CONFIG).exists()

    # ------------------------------------------------------------------ writing

    def write_config(self, method: Method) -> None:
        """Write every hyperparameter, resolved, with the method's name."""
        self._write(CONFIG, as_json(_config(method)))

    def append_history(self, report: EpochReport) -> None:
        """Append the line of an epoch."""
        append_line(self.path / HISTORY, json.dumps(report.line()), "make room and continue with --resume")

    def history(self) -> list[dict[str, Any]]:
        """Lines of the epochs so far."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        try:
            return [_history_line(line) for line in read_text(file, LARGE_JSON).splitlines()]
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{file} is not readable ({reason(error)}); {AGAIN}") from None

    def cut_history(self, epochs: int) -> None:
        """Keep the lines that a checkpoint has seen; the last one may be torn by a crash."""
        file = self.path / HISTORY
        lines = read_text(file, LARGE_JSON).splitlines()[:epochs] if file.exists() else []
        self._write(HISTORY, "".join(line + "\n" for line in lines))

    def write_history(self, lines: Sequence[dict[str, Any]]) -> None:
        """Write all lines at once."""
        self._write(HISTORY, "".join(json.dumps(line) + "\n" for line in lines))

    def write_model(self, model: RunRecord) -> str:
        """Write tensors, tables and at last the manifest, which finishes the run; returns the tensors' digest."""
        graph = model.method.graph
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in model.method.state().items()}
        users, items = (degree.cpu().numpy().astype(np.int64) for degree in (graph.user_degree, graph.item_degree))
        columns = [
            model.item_ids.alias(Column.ITEM),
            pl.Series(Column.COUNT, items),
            pl.Series(GROUP, np.where(popular_items(items.astype(np.float64)), "popular", "niche")),
        ]
        if model.candidates is not None:
            columns.append(pl.Series(CANDIDATE, np.isin(np.arange(len(items)), model.candidates)))
        if model.popularity is not None:
            columns.append(pl.Series(RECENT, model.popularity, pl.Float32))
        contents: dict[str, Content] = {
            TENSORS: lambda file: save_file(tensors, file),
            USERS: pl.DataFrame([model.user_ids.alias(Column.USER), pl.Series(Column.COUNT, users)]).write_parquet,
            ITEMS: pl.DataFrame(columns).write_parquet,
            EDGES: _edges(model).write_parquet,
        }
        if model.attributes is not None:
            contents[ATTRIBUTES_FILE] = model.attributes.with_ids(model.item_ids).write_parquet
        write_files(self.path, contents, DISK_FULL)
        files = {name: digest(self.path / name) for name in BOUND if (self.path / name).exists()}
        self._write(MANIFEST, as_json({"format": FORMAT} | model.manifest | {"versions": versions(), "files": files}))
        return files[TENSORS]

    def write_evaluation(self, evaluation: Evaluation, model: RunRecord) -> None:
        """Write `metrics.json` and `per_user.parquet`.

        Parameters
        ----------
        evaluation : of the run's own lists; one with another popularity dial or re-ranker is refused
        model : what was measured; refused where the run holds another model by now
        """
        if not model.makes_lists_of(evaluation.protocol):
            raise InputError(
                f"the lists that were measured are not those of {self.path}, which keeps another popularity dial or "
                "re-ranker; write the numbers elsewhere"
            )
        contents: dict[str, Content] = {
            PER_USER: evaluation.per_user.write_parquet,
            METRICS: as_json(evaluation.as_json() | {"model": model.digest}),
        }
        with self._held_for(model):
            write_files(self.path, contents, "make room, or copy the run to where it can be written")

    def write_dial(self, curve: DialCurve, model: RunRecord) -> None:
        """Write another curve of the popularity dial, and so another choice, into the manifest.

        Parameters
        ----------
        curve : the curve with its choice
        model : what was measured; refused where the run holds another model by now
        """
        with self._held_for(model):
            self._write(MANIFEST, as_json(self.read_json(MANIFEST) | {"dial": finite(curve.as_json())}))

    @contextmanager
    def _held_for(self, model: RunRecord) -> Iterator[None]:
        """Hold the folder, so that it is not replaced while something measured with its model is written into it."""
        with hold_folder(settled(self.path), self.path):
            if model.digest != digest(self.path / TENSORS):
                raise InputError(
                    f"{self.path} was replaced while its model was measured, so nothing was written; "
                    f"measure the new one with `dpaa evaluate {self.path}`"
                )
            yield

    def _write(self, name: str, content: str) -> None:
        write_file(self.path / name, content, DISK_FULL)

    # ------------------------------------------------------------------ reading

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder."""
        settled(self.path)
        if not self.path.is_dir():
            raise InputError(f"there is no run folder {self.path}; make one with `dpaa train`")
        if not (self.path / name).exists():
            state, remedy = "not a run folder", "make a run with `dpaa train`"
            if name == MANIFEST and self.has_config:
                state, remedy = "an unfinished run", "finish it with `dpaa train … --resume`"
                remedy += ", or at its checkpoint with --finish" if self.checkpoints.file.exists() else ""
            raise InputError(f"{self.path} is {state} (it has no {name}); {remedy}")
        return read_json(self.path / name, SMALL_JSON, AGAIN)

    def read_evaluation(self) -> dict[str, Any] | None:
        """`metrics.json`, made with the model that is here; None where the run was not evaluated."""
        file = self.path / METRICS
        if not file.is_file():
            return None
        content = self.read_json(METRICS)
        again = f"make it again with `dpaa evaluate {self.path}`"
        try:
            measured = _Measured.model_validate(content)
        except ValidationError:
            raise InputError(f"{file} lacks metrics or protocol; {again}") from None
        if measured.model is not None and measured.model != digest(self.path / TENSORS):
            raise InputError(f"{file} was measured with another model than the one beside it; {again}")
        return content

    def read_manifest(self) -> tuple[dict[str, Any], Manifest]:
        """`manifest.json` as it is, and the checked part of it."""
        content = self.read_json(MANIFEST)
        if content.get("format") != FORMAT:
            raise InputError(
                f"{self.path} has run format {content.get('format')!r}, this version reads {FORMAT}; train again"
            )
        try:
            return content, Manifest.model_validate(content)
        except ValidationError as error:
            wrong = WRONG[str(error.errors()[0]["loc"][0])]
            raise InputError(f"{self.path / MANIFEST} {wrong}; {AGAIN}") from None

    def read(self, device: str = "cpu") -> RunRecord:
        """A finished run, every file checked before it is used."""
        manifest, about = self.read_manifest()
        configured = self._read_config(manifest.get("method_origin"))
        users, items = self._read_table(USERS, [Column.USER]), self._read_table(ITEMS, [Column.ITEM])
        user_ids, item_ids = self._ascending(USERS, users[Column.USER]), self._ascending(ITEMS, items[Column.ITEM])
        pairs = self._read_pairs(user_ids, item_ids)
        method: Method = attach(configured, BipartiteGraph.from_pairs(pairs, len(user_ids), len(item_ids), device))
        method.load_state(self._read_tensors(method.state_shapes()))
        candidates, popularity = self._candidates(items), None
        if RECENT in items.columns:
            self._check_decimals(items, ITEMS, RECENT, (pl.Float32,))
            popularity = items[RECENT].to_numpy()
        for name in BOUND:
            if name in about.files and about.files[name] != digest(self.path / name):
                raise InputError(
                    f"{self.path / name} is not the file this run was written with (its digest is not the one in "
                    f"{MANIFEST}); {AGAIN}"
                )
        return RunRecord(
            method,
            user_ids,
            item_ids,
            pairs,
            candidates,
            manifest,
            self.path,
            edges=self.path / EDGES,
            attributes=read_attributes(self.path, item_ids, about.files.get(ATTRIBUTES_FILE), AGAIN),
            digest=about.files.get(TENSORS) or digest(self.path / TENSORS),
            popularity=popularity,
        )

    def read_weights(self, model: RunRecord, n_layers: int) -> list[EdgeWeights]:
        """The message weights of layers 0..L−1 in the order of the model's edges."""
        file = self.path / EDGES
        present = parquet_schema(file)  # readable: the model's pairs came from it
        names = [f"weight_{layer}" for layer in range(n_layers)]
        back = [name for name in (f"weight_back_{layer}" for layer in range(n_layers)) if name in present]
        edges = self._read_table(EDGES, [Column.USER, Column.ITEM, *names, *back])
        keys = look_up(edges[Column.USER], model.user_ids, "user").astype(np.int64) * len(model.item_ids)
        keys += look_up(edges[Column.ITEM], model.item_ids, "item")
        order = np.argsort(keys)
        if not np.array_equal(keys[order], model.train.keys(len(model.item_ids))):
            raise InputError(f"{file} has a pair twice; {AGAIN}")
        columns: dict[str, torch.Tensor] = {}
        for name in (*names, *back):
            self._check_decimals(edges, EDGES, name, (pl.Float32, pl.Float64))
            columns[name] = torch.from_numpy(edges[name].to_numpy()[order])
        return [EdgeWeights(columns[name], columns.get(name.replace("_", "_back_"))) for name in names]

    def _read_config(self, origin: object) -> Method:
        config = self.read_json(CONFIG)
        name = str(config.pop("method", ""))
        if isinstance(origin, dict) and origin.get("package") != "dpaa":
            METHODS.stored(name, origin, self.path)  # a plug-in's: says what to install
        try:
            method = METHODS.stored(name, None, self.path)
            return method(**with_earlier_defaults(method, config))
        except InputError as error:
            raise InputError(f"{self.path / CONFIG} was changed: {error}") from None

    def _read_pairs(self, user_ids: pl.Series, item_ids: pl.Series) -> Pairs:
        file, edges = self.path / EDGES, self._read_table(EDGES, [Column.USER, Column.ITEM])
        count = checked_counts(edges[Column.COUNT], file, "train again") if Column.COUNT in edges.columns else None
        try:
            users, items = look_up(edges[Column.USER], user_ids, "user"), look_up(edges[Column.ITEM], item_ids, "item")
        except InputError as error:
            unknown = str(error).partition(";")[0]
            raise InputError(f"{file} belongs to another run ({unknown}); train again") from None
        return Pairs.of(users, items, count)

    def _ascending(self, name: str, ids: pl.Series) -> pl.Series:
        """Ids as they must be: whole numbers or text, none empty, ascending, at least one."""
        ids = checked_type(ids, f"the ids in {self.path / name}")
        if not len(ids) or ids.has_nulls() or not (ids.is_sorted() and ids.is_unique().all()):
            raise InputError(f"the ids in {self.path / name} are not ascending or some are empty; train again")
        return ids

    def _candidates(self, items: pl.DataFrame) -> NDArray[Any] | None:
        if CANDIDATE not in items.columns:
            return None
        allowed = items[CANDIDATE]
        if allowed.dtype != pl.Boolean or not allowed.any():
            raise InputError(f"column {CANDIDATE!r} of {self.path / ITEMS} must say true for some items; train again")
        return allowed.arg_true().to_numpy()

    def _check_decimals(self, table: pl.DataFrame, file: str, name: str, types: tuple[Any, ...]) -> None:
        if table[name].dtype not in types or not table[name].is_finite().fill_null(value=False).all():
            raise InputError(f"column {name!r} of {self.path / file} must hold decimal numbers; train again")

    def _read_table(self, name: str, columns: list[str]) -> pl.DataFrame:
        file = self.path / name
        try:
            present = parquet_schema(file)
            missing = [column for column in columns if column not in present]
            if missing:
                raise InputError(f"{file} lacks the column {missing[0]!r}; train again")
            wanted = [*columns, *(extra for extra in (Column.COUNT, CANDIDATE, RECENT) if extra in present)]
            return read_parquet(file, wanted)
        except FileNotFoundError:
            raise InputError(f"{file} is missing; {AGAIN}") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{file} is not a readable Parquet file ({reason(error)}); train again") from None

    def _read_tensors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
        """Tensors, whose names, shapes and types are compared with the header before anything is allocated."""
        file = self.path / TENSORS
        if file.exists():
            check_regular(file)
        try:
            with safe_open(file, framework="pt") as opened:
                present = set(opened.keys())
                for name, shape in shapes.items():
                    if name not in present:
                        raise InputError(
                            f"{file} lacks the tensor {name!r}; it belongs to another run, or to an earlier version of "
                            "the method: train again"
                        )
                    part = opened.get_slice(name)
                    kind, own = part.get_dtype(), tuple(part.get_shape())
                    if (kind, own) != ("F32", shape):
                        raise InputError(
                            f"{file}: tensor {name!r} is {kind} {own}, expected F32 {shape}; it belongs to another run"
                        )
                tensors = {name: opened.get_tensor(name) for name in shapes}
        except FileNotFoundError:
            raise InputError(f"{file} is missing; {AGAIN}") from None
        except (SafetensorError, OSError) as error:
            raise InputError(f"{file} is not a readable safetensors file ({reason(error)}); train again") from None
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise InputError(f"{file}: tensor {name!r} has values that are not numbers; train again")
        return tensors


def _config(method: Method) -> dict[str, Any]:
    return {"method": method.name} | method.get_params()


def _edges(model: RunRecord) -> pl.DataFrame:
    """Training pairs with the weights of their messages; those of a loaded run are in its file."""
    if model.edges is not None:
        return read_parquet(model.edges, list(parquet_schema(model.edges)))
    pairs, method = model.train, model.method
    columns = [
        model.user_ids.gather(pairs.user).alias(Column.USER),
        model.item_ids.gather(pairs.item).alias(Column.ITEM),
    ]
    if pairs.count is not None:
        columns.append(pl.Series(Column.COUNT, pairs.count))
    weighted = method.tables.edge_columns() if isinstance(method, GraphMethod) else []
    return pl.DataFrame([*columns, *(pl.Series(name, weight.cpu().numpy()) for name, weight in weighted)])


def stands_for_run(folder: Path) -> bool:
    """Whether this is a folder of `dpaa debias`, whose choice is the run in it; a link there is not followed."""
    chosen = folder / CHOSEN
    itself = (folder / CONFIG).exists() or (folder / MANIFEST).exists()
    return not itself and (folder / FRONTIER).is_file() and (chosen / MANIFEST).is_file() and not chosen.is_symlink()


def _check_no_frontier(target: Path, shown: str | Path) -> None:
    if stands_for_run(target):
        raise InputError(f"{shown} holds a frontier of `dpaa debias` and its models; choose another folder with --out")


@contextmanager
def hold_folder(target: Path, shown: str | Path) -> Iterator[None]:
    """Lock a folder against other writers; done before anything in it is looked at or moved."""
    with ExitStack() as hold:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            hold.enter_context(locked(lock_of(target)))
        except OSError as error:
            raise InputError(f"cannot write {shown} ({reason(error)}); choose another folder with --out") from None
        yield


def versions() -> dict[str, str]:
    """Versions of this package and of what it computes with."""
    return {
        "dpaa": dpaa.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "polars": pl.__version__,
    }


def now() -> str:
    """The time as ISO text in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save_model(
    model: RunRecord, folder: str | Path, overwrite: bool = False, history: Sequence[dict[str, Any]] = ()
) -> None:
    """Write a run folder from a model; it appears whole or not at all.

    Parameters
    ----------
    model : the fitted model
    folder : where to
    overwrite : whether a run there is replaced
    history : lines of its training
    """
    target = check_folder_name(folder)
    with hold_folder(target, folder):
        if target.exists():
            _check_no_frontier(target, folder)
            current = RunFolder(target)
            if not target.is_dir() or (current.filled and not current.has_config):
                raise InputError(f"{folder} holds something else than a run; choose another folder")
            if current.filled and not overwrite:
                raise InputError(f"{folder} holds a run; pass overwrite=True or choose another folder")
        with whole_folder(target, DISK_FULL) as fresh:
            run = RunFolder(fresh)
            run.write_config(model.method)
            if history:
                run.write_history(history)
            run.write_model(model)
