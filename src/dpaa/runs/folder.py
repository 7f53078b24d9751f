"""The run folder: config, manifest, history, tensors and tables; nothing pickled, every file replaced as a whole."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import dpaa
from dpaa import _io
from dpaa._io import LARGE_JSON, SMALL_JSON, Content, as_json, digest, resolve_path
from dpaa._text import finite, parse_json
from dpaa.data.attributes import ATTRIBUTES_FILE, ItemAttributes, read_attributes
from dpaa.data.dataset import Dataset, checked_counts, read_dataset
from dpaa.data.ids import Column, checked_type, look_up
from dpaa.data.pairs import Pairs, popular_items
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.errors import DivergedError, InputError, reason
from dpaa.evaluation.dial_curve import DialCurve, active_kappa
from dpaa.evaluation.evaluator import Evaluation, Protocol
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.methods import METHODS
from dpaa.methods._options import with_earlier_defaults
from dpaa.methods.base import Method, attach
from dpaa.methods.graph_method import GraphMethod
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.training import CheckpointFolder
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


# ------------------------------------------------------------------ contents of the JSON files


class _Checked(BaseModel):
    """A file may come from anywhere: fields that are relied on have these types, others may hold anything."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


C = TypeVar("C", bound=BaseModel)


class _TrainedOn(_Checked):
    """The dataset of a run: its content and where it was."""

    name: str | None = None
    fingerprint: str | None = None
    path: str | None = None

    def read(self, run: Path) -> Dataset:
        """Read the dataset from its path; an error where it is no longer there.

        Parameters
        ----------
        run : the run folder, for the message
        """
        if not self.path or not Path(self.path).exists():
            raise InputError(f"the dataset of {run} is no longer at {self.path}; name it with --dataset")
        return read_dataset(self.path)


class _Manifest(_Checked):
    """`manifest.json`."""

    dataset: _TrainedOn
    files: dict[str, str]
    """Digests of the run's other files."""


class _Measured(_Checked):
    """`metrics.json`."""

    metrics: dict[str, Any]
    protocol: dict[str, Any]
    model: str
    """Digest of the model that was measured."""


class _Epoch(_Checked):
    """A line of `history.jsonl`."""

    epoch: int = Field(ge=0, lt=2**31)
    loss: float | None
    valid: dict[str, float | None]
    learning_rate: float | None = None
    embedding_shift: float | None = None
    pretrained_share: float | None = None
    iiw_by_decile: list[float | None] | None = Field(default=None, min_length=10, max_length=10)


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Contents of a run folder; `Model` adds recommendation on top.

    Parameters
    ----------
    method : fitted
    user_ids, item_ids : row i = index i, ascending
    train : training pairs: what a user has already seen
    candidates : items that may be recommended; None = all
    manifest : content of `manifest.json`
    path : the run folder; None for a model in memory
    attributes : titles and other columns of the items
    digest : SHA-256 of the file of its tensors; None for a model in memory
    popularity : (n_items,) recent popularity (`Dataset.recent_popularity`); None where the log has no times
    """

    method: Method
    user_ids: pl.Series
    item_ids: pl.Series
    train: Pairs
    candidates: NDArray[Any] | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    attributes: ItemAttributes | None = None
    digest: str | None = None
    popularity: NDArray[Any] | None = None

    @property
    def titles(self) -> pl.Series | None:
        """Titles of the items, row i = index i; None where there are none."""
        return None if self.attributes is None else self.attributes.titles

    @property
    def items(self) -> pl.DataFrame:
        """`item_id` of every item, row i = index i, with `title` and its other columns."""
        return (self.attributes or ItemAttributes(pl.DataFrame())).with_ids(self.item_ids)

    @property
    def trained_on(self) -> _TrainedOn:
        """The dataset that the model was trained on."""
        return _TrainedOn.model_validate(self.manifest.get("dataset", {}))

    @property
    def pretrained_run(self) -> str | None:
        """Path of the run that it was pre-trained with, as the manifest has it."""
        path = self.entry("pretrained").get("run")
        return path if isinstance(path, str) and path else None

    def entry(self, name: str) -> dict[str, Any]:
        """Return an object of the manifest, which may come from anywhere.

        Parameters
        ----------
        name : its key

        Returns
        -------
        the object; empty where there is none, or something else
        """
        entry = self.manifest.get(name)
        return entry if isinstance(entry, dict) else {}

    def makes_lists_of(self, protocol: Protocol) -> bool:
        """Whether an evaluation is of the model's own lists: with its popularity dial and re-ranker.

        Parameters
        ----------
        protocol : of the evaluation

        Returns
        -------
        whether it is
        """
        reranker = stored_reranker(self.manifest.get("rerank"), self.path or self)
        kappa = active_kappa(self.manifest.get("dial"))
        return (protocol.popularity_dial, protocol.rerank) == (kappa, reranker.in_words() if reranker else None)

    def check_trained_on(self, data: Dataset, remedy: str) -> None:
        """Refuse another dataset than the model's.

        Parameters
        ----------
        data : the dataset
        remedy : end of the message
        """
        if self.trained_on.fingerprint != data.fingerprint:
            raise InputError(f"the model was trained on another dataset than {data.name}; {remedy}")


# ------------------------------------------------------------------ the folder


class RunFolder:
    """One run on disk.

    Parameters
    ----------
    path : the folder; that of `dpaa debias` stands for the run that it chose
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if _stands_for_run(self.path):
            self.path /= CHOSEN
        self.checkpoints = CheckpointFolder(self.path / "checkpoint")

    @property
    def filled(self) -> bool:
        """Whether the folder has anything besides leftovers of a killed process."""
        return self.path.is_dir() and any(not _io.is_staging(file) for file in self.path.iterdir())

    @property
    def finished(self) -> bool:
        """Whether the manifest, which is written last, is there."""
        return (self.path / MANIFEST).exists()

    @property
    def has_config(self) -> bool:
        """Whether the config, which is written first, is there."""
        return (self.path / CONFIG).exists()

    @property
    def replacement(self) -> RunFolder:
        """Where a run that is to replace this one is written."""
        target = resolve_path(self.path)
        return RunFolder(target.parent / f".{target.name}.unfinished")

    @classmethod
    @contextmanager
    def begin(cls, path: str | Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[RunFolder]:
        """Open a folder to write a run into, locked against other processes.

        A run that fails without a checkpoint is removed again.

        Parameters
        ----------
        path : the folder
        overwrite : whether a run there may be replaced; it stays until the new run is whole
        resume : continue the unfinished run that is there

        Returns
        -------
        a context manager of the folder; it holds the lock and puts the finished run in place
        """
        target = _io.check_folder_name(path)
        # Locked before it is looked at: two calls at once would both find the folder empty.
        with hold_folder(path):
            run = cls._open(Path(path), target, overwrite, resume)
            begun = run.filled
            try:
                yield run
                run.tidy()
                if run.path != target:
                    _io.put_in_place(run.path, target)
                    _io.remove_folder(run.path)
            except Exception as error:
                kept = begun or run.finished or run.checkpoints.file.exists() or isinstance(error, Interrupted)
                if isinstance(error, DivergedError) or not kept:
                    _io.remove_folder(run.path)
                raise

    @classmethod
    def _open(cls, shown: Path, target: Path, overwrite: bool, resume: bool) -> RunFolder:
        """The folder to write to, with the lock held."""
        _check_run_or_empty(target, shown)
        _io.own_folder(target, DISK_FULL)
        current = cls(target)
        staged = current.replacement
        resume_staged = resume and overwrite and staged.has_config and not staged.finished
        if not current.filled or (resume and not current.finished and not resume_staged):
            return current
        if not overwrite:
            state = "a finished run" if current.finished else "an unfinished run; continue with --resume"
            raise InputError(f"{shown} holds {state}; pass --overwrite or choose another folder with --out")
        _check_run_or_empty(staged.path, staged.path)
        if not resume_staged:
            _io.remove_folder(staged.path)
        _io.own_folder(staged.path, DISK_FULL)
        return staged

    def tidy(self) -> None:
        """Remove the checkpoint, and what a killed process left half written."""
        self.checkpoints.remove()
        _io.sweep(self.path)

    def finished_before(self, method: Method, fingerprint: str, rerank: Reranker | None = None) -> bool:
        """Whether this finished run is one with this method, hyperparameters and re-ranker on this dataset.

        Parameters
        ----------
        method : with its hyperparameters
        fingerprint : of the dataset
        rerank : the re-ranker that the run keeps

        Returns
        -------
        whether it is
        """
        config, (manifest, about) = with_earlier_defaults(type(method), self.read_json(CONFIG)), self.read_manifest()
        same = all(config.get(name) == value for name, value in _config(method).items() if name != "threads")
        same_lists = stored_reranker(manifest.get("rerank"), self.path) == rerank
        return same and same_lists and about.dataset.fingerprint == fingerprint

    # ------------------------------------------------------------------ writing

    def write_config(self, method: Method) -> None:
        """Write every hyperparameter, resolved, with the method's name.

        Parameters
        ----------
        method : with its hyperparameters
        """
        self._write(CONFIG, as_json(_config(method)))

    def append_history(self, report: EpochReport) -> None:
        """Append the line of an epoch.

        Parameters
        ----------
        report : results of the epoch
        """
        _io.append_line(self.path / HISTORY, json.dumps(report.line()), "make room and continue with --resume")

    def write_history(self, lines: Sequence[dict[str, Any]]) -> None:
        """Write all lines at once.

        Parameters
        ----------
        lines : one per epoch
        """
        self._write(HISTORY, "".join(json.dumps(line) + "\n" for line in lines))

    def write_model(self, model: RunRecord) -> str:
        """Write tensors, tables and at last the manifest, which finishes the run.

        Parameters
        ----------
        model : the fitted model

        Returns
        -------
        digest of the tensors
        """
        graph = model.method.graph
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in model.method.state().items()}
        users, items = (degree.cpu().numpy().astype(np.int64) for degree in (graph.user_degree, graph.item_degree))
        group = np.where(popular_items(items.astype(np.float64)), "popular", "niche")
        columns = [model.item_ids.alias(Column.ITEM), pl.Series(Column.COUNT, items), pl.Series(GROUP, group)]
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
        _io.write_files(self.path, contents, DISK_FULL)
        # The manifest comes last: that it is there makes a run finished, and its digests bind the other files
        # to it.
        files = {name: digest(self.path / name) for name in BOUND if (self.path / name).exists()}
        self._write(MANIFEST, as_json({"format": FORMAT} | model.manifest | {"versions": versions(), "files": files}))
        return files[TENSORS]

    def write_evaluation(self, evaluation: Evaluation, model: RunRecord) -> None:
        """Write `metrics.json` and `per_user.parquet`.

        Parameters
        ----------
        evaluation : of the run's own lists (`RunRecord.makes_lists_of`)
        model : what was measured; a run that holds another model by now is refused when it is read
        """
        contents: dict[str, Content] = {
            PER_USER: evaluation.per_user.write_parquet,
            METRICS: as_json(evaluation.as_json() | {"model": model.digest}),
        }
        with hold_folder(self.path):
            _io.write_files(self.path, contents, "make room, or copy the run to where it can be written")

    def write_dial(self, curve: DialCurve, model: RunRecord) -> None:
        """Replace the popularity dial's curve and κ in the manifest.

        Parameters
        ----------
        curve : the curve with its choice
        model : what was measured; refused where the run holds another model by now
        """
        with hold_folder(self.path):
            if model.digest != digest(self.path / TENSORS):
                raise InputError(f"{self.path} was replaced while its model was measured; measure the new one")
            self._write(MANIFEST, as_json(self.read_json(MANIFEST) | {"dial": finite(curve.as_json())}))

    def _write(self, name: str, content: str) -> None:
        _io.write_file(self.path / name, content, DISK_FULL)

    # ------------------------------------------------------------------ reading

    def history(self, epochs: int | None = None) -> list[dict[str, Any]]:
        """Read the lines of the history and check them.

        Parameters
        ----------
        epochs : how many to read; default: all.  After a crash the last line may be torn

        Returns
        -------
        one dict per epoch
        """
        file = self.path / HISTORY
        if not file.exists():
            return []
        lines = _io.read_text(file, LARGE_JSON).splitlines()[:epochs]
        try:
            history = [parse_json(line) for line in lines]
        except ValueError as error:
            raise InputError(f"{file} is not readable ({reason(error)}); {AGAIN}") from None
        for line in history:
            checked(_Epoch, line, file)
        return history

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a JSON object of the folder.

        Parameters
        ----------
        name : of the file

        Returns
        -------
        its content
        """
        resolve_path(self.path)
        if not self.path.is_dir():
            raise InputError(f"there is no run folder {self.path}; make one with `dpaa train`")
        if not (self.path / name).exists():
            if (self.path / "dataset.json").exists():
                train = f"dpaa train {self.path} --out RUN"
                raise InputError(f"{self.path} is a dataset, not a run; make one with `{train}`")
            if (self.path / "trials.jsonl").exists():
                raise InputError(f"{self.path} is a study of `dpaa tune`, not a run; name its runs: {self.path}/runs/*")
            unfinished = name == MANIFEST and self.has_config
            state = "an unfinished run" if unfinished else "not a run folder"
            remedy = "finish it with `dpaa train … --resume`" if unfinished else "make it with `dpaa train`"
            raise InputError(f"{self.path} is {state} (it has no {name}); {remedy}")
        return _io.read_json(self.path / name, SMALL_JSON, AGAIN)

    def read_evaluation(self) -> dict[str, Any] | None:
        """Read `metrics.json` and check that it was made with the model that is here.

        Returns
        -------
        its content; None where the run was not evaluated
        """
        file = self.path / METRICS
        if not file.is_file():
            return None
        content, again = self.read_json(METRICS), f"make it again with `dpaa evaluate {self.path}`"
        if checked(_Measured, content, file, again).model != digest(self.path / TENSORS):
            raise InputError(f"{file} was evaluated with another model than the one in this folder; {again}")
        return content

    def read_manifest(self) -> tuple[dict[str, Any], _Manifest]:
        """Read `manifest.json`.

        Returns
        -------
        its content, and the checked part of it
        """
        content = self.read_json(MANIFEST)
        if content.get("format") != FORMAT:
            raise InputError(
                f"{self.path} has run format {content.get('format')!r}, this version reads {FORMAT}; train again"
            )
        return content, checked(_Manifest, content, self.path / MANIFEST)

    def read(self, device: str = "cpu") -> RunRecord:
        """Read a finished run, every file checked before it is used.

        Parameters
        ----------
        device : where the method scores

        Returns
        -------
        the method and everything that belongs to it
        """
        manifest, about = self.read_manifest()
        configured = self._read_config(manifest.get("method_origin"))
        items = self._read_table(ITEMS, [Column.ITEM], [CANDIDATE, RECENT])
        user_ids = self._ascending(USERS, self._read_table(USERS, [Column.USER])[Column.USER])
        item_ids = self._ascending(ITEMS, items[Column.ITEM])
        pairs = self._read_pairs(user_ids, item_ids)
        attributes = read_attributes(self.path, item_ids, about.files.get(ATTRIBUTES_FILE), AGAIN)
        graph = BipartiteGraph.from_pairs(pairs, len(user_ids), len(item_ids), device, attributes)
        method: Method = attach(configured, graph)
        method.load_state(self._read_tensors(method.state_shapes()))
        candidates = items[CANDIDATE].cast(pl.Boolean).arg_true().to_numpy() if CANDIDATE in items.columns else None
        popularity = self._numbers(items, ITEMS, RECENT) if RECENT in items.columns else None
        # Digests last: a damaged file has been named by now for what is wrong with it, which says more.
        for name in BOUND:
            if name in about.files and about.files[name] != digest(self.path / name):
                raise InputError(f"{self.path / name} is not the file this run was written with; {AGAIN}")
        ids, tensors = (user_ids, item_ids), digest(self.path / TENSORS)
        return RunRecord(method, *ids, pairs, candidates, manifest, self.path, attributes, tensors, popularity)

    def read_weights(self, model: RunRecord, n_layers: int) -> list[EdgeWeights]:
        """Read the message weights of the layers, in the order of the model's edges.

        Parameters
        ----------
        model : of this run
        n_layers : 0 … L−1

        Returns
        -------
        the weights of each layer
        """
        names = [f"weight_{layer}" for layer in range(n_layers)]
        back = [f"weight_back_{layer}" for layer in range(n_layers)]
        edges = self._read_table(EDGES, [Column.USER, Column.ITEM, *names], back)
        keys = look_up(edges[Column.USER], model.user_ids, "user").astype(np.int64) * len(model.item_ids)
        keys += look_up(edges[Column.ITEM], model.item_ids, "item")
        order = np.argsort(keys)
        if not np.array_equal(keys[order], model.train.keys(len(model.item_ids))):
            raise InputError(f"{self.path / EDGES} has a pair twice; {AGAIN}")
        columns = {name: torch.from_numpy(self._numbers(edges, EDGES, name)[order]) for name in edges.columns[2:]}
        return [EdgeWeights(columns[name], columns.get(name.replace("_", "_back_"))) for name in names]

    def _read_config(self, origin: object) -> Method:
        config = self.read_json(CONFIG)
        name = str(config.pop("method", ""))
        if isinstance(origin, dict) and origin.get("package") != "dpaa":
            METHODS.stored(name, origin, self.path)  # of a plug-in: the error names what to install
        try:
            kind = METHODS.stored(name, None, self.path)
            return kind(**with_earlier_defaults(kind, config))
        except InputError as error:
            raise InputError(f"{self.path / CONFIG} was changed: {error}") from None

    def _read_pairs(self, user_ids: pl.Series, item_ids: pl.Series) -> Pairs:
        file, edges = self.path / EDGES, self._read_table(EDGES, [Column.USER, Column.ITEM], [Column.COUNT])
        count = checked_counts(edges[Column.COUNT], file, "train again") if Column.COUNT in edges.columns else None
        try:
            users, items = look_up(edges[Column.USER], user_ids, "user"), look_up(edges[Column.ITEM], item_ids, "item")
        except InputError as error:
            raise InputError(f"{file} belongs to another run ({str(error).partition(';')[0]}); {AGAIN}") from None
        return Pairs.of(users, items, count)

    def _ascending(self, name: str, ids: pl.Series) -> pl.Series:
        """Check ids: whole numbers or text, none empty, ascending, at least one."""
        ids = checked_type(ids, f"the ids in {self.path / name}")
        if not len(ids) or ids.has_nulls() or not (ids.is_sorted() and ids.is_unique().all()):
            raise InputError(f"the ids in {self.path / name} are not ascending or some are empty; {AGAIN}")
        return ids

    def _numbers(self, table: pl.DataFrame, file: str, name: str) -> NDArray[Any]:
        """Read a column of finite decimal numbers."""
        if not table[name].dtype.is_float() or not table[name].is_finite().fill_null(value=False).all():
            raise InputError(f"column {name!r} of {self.path / file} must hold decimal numbers; {AGAIN}")
        return table[name].to_numpy()

    def _read_table(self, name: str, columns: list[str], optional: Sequence[str] = ()) -> pl.DataFrame:
        with _readable(self.path / name) as file:
            present = parquet_schema(file)
            if missing := [column for column in columns if column not in present]:
                raise InputError(f"{file} lacks the column {missing[0]!r}; {AGAIN}")
            return read_parquet(file, [*columns, *(column for column in optional if column in present)])

    def _read_tensors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
        """Tensors, whose names, shapes and types are compared with the header before anything is allocated."""
        with _readable(self.path / TENSORS) as file, safe_open(file, framework="pt") as opened:
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
            stored = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
            for name, shape in shapes.items():
                if stored.get(name) != ("F32", shape):
                    kept = stored.get(name, "missing")
                    raise InputError(f"{file}: tensor {name!r} must be F32 {shape}, but is {kept}; {AGAIN}")
            tensors = {name: opened.get_tensor(name) for name in shapes}
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise InputError(f"{file} has values that are not numbers; {AGAIN}")
        return tensors


@contextmanager
def _readable(file: Path) -> Iterator[Path]:
    """Name a file that is missing, no regular file or damaged."""
    _io.check_regular(file)
    try:
        yield file
    except (SafetensorError, OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not readable ({reason(error)}); {AGAIN}") from None


def checked(kind: type[C], content: object, file: str | Path, remedy: str = AGAIN) -> C:
    """Check the content of a file; the message names the first wrong field and its rule.

    Parameters
    ----------
    kind : model of the content
    content : the object in the file
    file, remedy : for the message
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg'].partition(' or instance of ')[0].lower()}"
        raise InputError(f"{file} is damaged ({why}); {remedy}") from None


def _config(method: Method) -> dict[str, Any]:
    return {"method": method.name} | method.get_params()


def _edges(model: RunRecord) -> pl.DataFrame:
    """Training pairs with the weights of their messages; those of a loaded run are in its file."""
    if model.path is not None and model.digest is not None:
        return read_parquet(model.path / EDGES, list(parquet_schema(model.path / EDGES)))
    pairs, method = model.train, model.method
    users, items = model.user_ids.gather(pairs.user), model.item_ids.gather(pairs.item)
    columns = [users.alias(Column.USER), items.alias(Column.ITEM)]
    if pairs.count is not None:
        columns.append(pl.Series(Column.COUNT, pairs.count))
    weighted = method.tables.edge_columns() if isinstance(method, GraphMethod) else []
    return pl.DataFrame([*columns, *(pl.Series(name, weight.cpu().numpy()) for name, weight in weighted)])


def _stands_for_run(folder: Path) -> bool:
    """Whether this is a folder of `dpaa debias`, whose choice is the run in it; a link there is not followed."""
    chosen = folder / CHOSEN
    itself = (folder / CONFIG).exists() or (folder / MANIFEST).exists()
    return not itself and (folder / FRONTIER).is_file() and (chosen / MANIFEST).is_file() and not chosen.is_symlink()


def _check_run_or_empty(target: Path, shown: str | Path) -> None:
    """Refuse to write a run over anything else."""
    current = RunFolder(target)
    other = target.exists() and not target.is_dir()
    if other or _stands_for_run(target) or (current.filled and not current.has_config):
        raise InputError(f"{shown} holds something other than a run; choose another folder with --out")


@contextmanager
def hold_folder(folder: str | Path) -> Iterator[None]:
    """Lock a folder against other writers; done before anything in it is looked at or moved.

    Parameters
    ----------
    folder : its parents are made; if it is new and nothing comes of it, it and they are removed again

    Returns
    -------
    a context in which the folder is locked
    """
    target = resolve_path(folder)
    created = [] if target.exists() else [target, *_io.missing_folders(target)]
    try:
        with ExitStack() as hold:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                hold.enter_context(_io.locked(_io.lock_of(target)))
            except OSError as error:
                raise InputError(f"cannot write {folder} ({reason(error)}); choose another folder with --out") from None
            yield
    finally:
        _io.remove_empty(created)  # after the lock file beside it is gone; filled ones stay


def versions() -> dict[str, str]:
    """Versions of this package and of what it computes with."""
    packages = {package.__name__: str(package.__version__) for package in (dpaa, torch, np, pl)}
    return packages | {"python": platform.python_version()}


def now() -> str:
    """The time as ISO text in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def save_model(
    model: RunRecord, folder: str | Path, overwrite: bool = False, history: Sequence[dict[str, Any]] = ()
) -> None:
    """Write a run folder from a model.

    Parameters
    ----------
    model : the fitted model
    folder : where to
    overwrite : whether a run there is replaced
    history : lines of its training
    """
    with RunFolder.begin(folder, overwrite=overwrite) as run:
        run.write_config(model.method)
        if history:
            run.write_history(history)
        run.write_model(model)
