"""The run folder: config, manifest, history, tensors and tables; nothing pickled, every file replaced as a whole."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import dpaa
from dpaa.data.attributes import ATTRIBUTES_FILE, read_attributes
from dpaa.data.columns import Column
from dpaa.data.dataset import checked_counts
from dpaa.data.ids import checked_type, look_up
from dpaa.data.pairs import Pairs
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.popularity import popular_items
from dpaa.errors import DivergedError, InputError, reason
from dpaa.evaluation.dial_curve import DialCurve
from dpaa.evaluation.evaluator import Evaluation
from dpaa.files import (
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
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.methods import METHODS
from dpaa.methods.base import Method, attach
from dpaa.methods.graph_method import GraphMethod, with_earlier_defaults
from dpaa.ranking.reranker import Reranker, stored_reranker
from dpaa.runs.history import history_line
from dpaa.runs.manifest import WRONG, Manifest, Measured
from dpaa.runs.record import RunRecord
from dpaa.text import finite
from dpaa.training.checkpoint import CheckpointFolder
from dpaa.training.trainer import EpochReport, Interrupted

CONFIG, MANIFEST, HISTORY, TENSORS = "config.json", "manifest.json", "history.jsonl", "model.safetensors"
USERS, ITEMS, EDGES = "users.parquet", "items.parquet", "edges.parquet"
METRICS, PER_USER = "metrics.json", "per_user.parquet"
GROUP, CANDIDATE, RECENT = "group", "candidate", "recent_popularity"
PARTS = "parts"
"""Where an assembled method's trainings are kept until it is whole."""
FRONTIER, CHOSEN = "frontier.json", "run"
"""What `dpaa debias` writes into its folder: such a folder stands for the run in it."""
BOUND = (CONFIG, HISTORY, TENSORS, USERS, ITEMS, EDGES, ATTRIBUTES_FILE)
"""Files whose digests are in the manifest: those of another run, or of another training, are refused."""
FORMAT = 1
ROOM = "make room or choose another folder with --out"


class RunFolder:
    """One run on disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if stands_for_run(self.path):
            self.path /= CHOSEN
        self.checkpoints = CheckpointFolder(self.path / "checkpoint")

    @classmethod
    @contextmanager
    def begin(cls, path: str | Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[RunFolder]:
        """A folder to write a run into, held against other processes: new, or that of an unfinished run (`resume`).

        What is there already stays until the new run is whole (`overwrite`): that one is made beside, as
        `.NAME.unfinished`, and takes its place in one rename at the end.  A run that came to nothing (an
        error, and nothing to go on from) is removed again.
        """
        target = check_folder_name(path)
        made = missing_folders(target)
        try:
            with hold_folder(target, path):
                run = cls._claimed(Path(path), target, overwrite, resume)
                begun = run.filled
                try:
                    yield run
                    run._commit(target)
                except Exception as error:
                    kept = begun or run._can_go_on or run.finished  # finished: it could not be put in its place
                    came_to_nothing = not isinstance(error, Interrupted) and not kept
                    if isinstance(error, DivergedError) or came_to_nothing:
                        remove_folder(run.path)
                    raise
        except Exception as error:
            if not isinstance(error, Interrupted):
                remove_empty(made)
            raise

    @classmethod
    def _claimed(cls, shown: Path, target: Path, overwrite: bool, resume: bool) -> RunFolder:
        """Where to write, now that nobody else does."""
        if target.exists() and not target.is_dir():
            raise InputError(f"{shown} is a file; choose another folder with --out")
        _check_no_frontier(target, shown)
        own_folder(target, ROOM)
        there, beside = cls(target), cls._beside(target)
        if not there.filled:
            return there
        if not there.has_config:
            raise InputError(f"{shown} holds something else than a run; choose another folder with --out")
        if there.finished:
            there.remove_scaffold()  # of a process that was killed in its last moment
        go_on_beside = resume and overwrite and beside.path.exists()
        if resume and not there.finished and not go_on_beside:
            return there
        if overwrite:
            check_replaceable(target, shown)
            beside._make_room(keep=go_on_beside and not beside.finished)
            return beside
        waits = (
            "; a run to replace it is unfinished, continue with --resume --overwrite" if beside.path.exists() else ""
        )
        if there.finished:
            raise InputError(
                f"{shown} holds a finished run; pass --overwrite or choose another folder with --out{waits}"
            )
        raise InputError(f"{shown} holds an unfinished run; continue with --resume or pass --overwrite{waits}")

    def _make_room(self, keep: bool) -> None:
        """A folder beside the run that is to be replaced; an unfinished run in it stays (`keep`) or goes."""
        if self.filled and not self.has_config:
            raise InputError(
                f"{self.path}, where the new run would be made, holds something else than a run; move it away"
            )
        own_folder(self.path, ROOM)
        if not keep:
            for file in self.path.iterdir():
                remove_folder(file) if file.is_dir() else file.unlink(missing_ok=True)  # or swept by then

    def finished_before(self, method: Method, fingerprint: str, rerank: Reranker | None = None) -> bool:
        """Whether this is a whole run with this method, settings and re-ranker on this dataset.

        So a training that was killed in its last moment, when all was written, can be resumed like any other.
        """
        target = settled(self.path)
        if not RunFolder(target).finished:
            return False
        with hold_folder(target, self.path):
            self.remove_scaffold()
            config, (manifest, about) = self.read_json(CONFIG), self.read_manifest()
            made_with = with_earlier_defaults(type(method), config)
            same = all(made_with.get(name) == value for name, value in _config(method).items() if name != "threads")
            same_lists = stored_reranker(manifest.get("rerank"), self.path) == rerank
            return same and same_lists and about.dataset.fingerprint == fingerprint

    @classmethod
    def to_resume(cls, path: str | Path, overwrite: bool) -> RunFolder | None:
        """The unfinished run that `begin` with `resume` would go on with; None where there is none."""
        target = settled(path)
        places = [cls._beside(target), cls(target)] if overwrite else [cls(target)]
        return next((run for run in places if run.has_config and not run.finished), None)

    @classmethod
    def to_finish(cls, path: str | Path, overwrite: bool) -> RunFolder:
        """The unfinished run whose best epoch so far can be kept.

        Parameters
        ----------
        path
            The run folder.
        overwrite
            Whether a run that is to replace the one in this folder is meant too.

        Returns
        -------
        RunFolder
            With a checkpoint; where there is none, or the run is finished, the call is refused.
        """
        run, there = cls.to_resume(path, overwrite), cls(settled(path))
        if run is None and there.finished:
            beside = cls._beside(settled(path)).has_config and not overwrite
            other = "; finish the run that is to replace it with --finish --overwrite" if beside else ""
            raise InputError(f"{path} is finished already{other or '; there is nothing to finish'}")
        if run is None:
            raise InputError(f"there is no unfinished run in {path}; check the path, or train without --finish")
        if not run.checkpoints.file.exists():
            raise InputError(f"{path} has no checkpoint to take its best epoch from; continue with --resume")
        return run

    @classmethod
    def _beside(cls, target: Path) -> RunFolder:
        """Where a run that is to replace another is made."""
        return cls(target.parent / f".{target.name}.unfinished")

    def _commit(self, target: Path) -> None:
        """The new run is whole: it takes its place, and what it replaces may go."""
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

    def remove_scaffold(self) -> None:
        """The checkpoint, the trainings an assembled run was made of, and what a killed process left half written."""
        self.checkpoints.remove()
        remove_folder(self.path / PARTS)
        sweep(self.path)

    def tidy(self) -> None:
        """Finish what a process did not that was killed in its last moment, when the run was whole."""
        with hold_folder(settled(self.path), self.path):
            self.remove_scaffold()

    @property
    def _can_go_on(self) -> bool:
        """Whether `--resume` would find anything: a checkpoint, or parts that are done."""
        parts = self.path / PARTS
        return self.checkpoints.file.exists() or (parts.is_dir() and not parts.is_symlink() and any(parts.iterdir()))

    @property
    def filled(self) -> bool:
        """Whether anything is there but what a killed process left half written."""
        return self.path.is_dir() and any(not is_staging(file) for file in self.path.iterdir())

    @property
    def finished(self) -> bool:
        """The manifest is written last."""
        return (self.path / MANIFEST).exists()

    @property
    def has_config(self) -> bool:
        """The settings are written first."""
        return (self.path / CONFIG).exists()

    # ------------------------------------------------------------------ writing

    def write_config(self, method: Method) -> None:
        """Every setting, resolved, with the method's name."""
        self._write(CONFIG, as_json(_config(method)))

    def append_history(self, report: EpochReport) -> None:
        """A line per epoch."""
        append_line(self.path / HISTORY, json.dumps(report.line()), "make room and continue with --resume")

    def history(self) -> list[dict[str, Any]]:
        """The epochs so far, or none."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        try:
            return [history_line(line) for line in read_text(file, LARGE_JSON).splitlines()]
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{file} is not readable ({reason(error)}); restore it or train again") from None

    def cut_history(self, epochs: int) -> None:
        """Keep the first `epochs` lines: those a checkpoint has seen (the last line may be torn by a crash)."""
        file = self.path / HISTORY
        lines = read_text(file, LARGE_JSON).splitlines()[:epochs] if file.exists() else []
        self._write(HISTORY, "".join(line + "\n" for line in lines))

    def write_history(self, lines: Sequence[dict[str, Any]]) -> None:
        """All lines at once."""
        self._write(HISTORY, "".join(json.dumps(line) + "\n" for line in lines))

    def write_model(self, model: RunRecord) -> str:
        """Tensors, tables and at last the manifest: from then on the run is finished.  Returns the tensors' digest."""
        graph = model.method.graph
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in model.method.state().items()}
        users, items = graph.user_degree.cpu().numpy(), graph.item_degree.cpu().numpy()
        user_table = pl.DataFrame([model.user_ids.alias(Column.USER), pl.Series(Column.COUNT, users.astype(np.int64))])
        group = np.where(popular_items(items.astype(np.float64)), "popular", "niche")
        columns = [
            model.item_ids.alias(Column.ITEM),
            pl.Series(Column.COUNT, items.astype(np.int64)),
            pl.Series(GROUP, group),
        ]
        if model.candidates is not None:
            columns.append(pl.Series(CANDIDATE, np.isin(np.arange(len(items)), model.candidates)))
        if model.popularity is not None:
            columns.append(pl.Series(RECENT, model.popularity, pl.Float32))
        contents: dict[str, Content] = {
            TENSORS: lambda file: save_file(tensors, file),
            USERS: user_table.write_parquet,
            ITEMS: pl.DataFrame(columns).write_parquet,
            EDGES: self._edges(model).write_parquet,
        }
        if model.attributes is not None:
            contents[ATTRIBUTES_FILE] = model.attributes.with_ids(model.item_ids).write_parquet
        write_files(self.path, contents, ROOM)
        files = {name: digest(self.path / name) for name in BOUND if (self.path / name).exists()}
        self._write(MANIFEST, as_json({"format": FORMAT} | model.manifest | {"versions": versions(), "files": files}))
        return files[TENSORS]

    @staticmethod
    def _edges(model: RunRecord) -> pl.DataFrame:
        if model.edges is not None:
            return read_parquet(model.edges, list(parquet_schema(model.edges)))
        pairs = model.train
        columns = [
            model.user_ids.gather(pairs.user).alias(Column.USER),
            model.item_ids.gather(pairs.item).alias(Column.ITEM),
        ]
        if pairs.count is not None:
            columns.append(pl.Series(Column.COUNT, pairs.count))
        method = model.method
        weighted = method.tables.edge_columns() if isinstance(method, GraphMethod) else []
        weights = [pl.Series(name, weight.cpu().numpy()) for name, weight in weighted]
        return pl.DataFrame([*columns, *weights])

    def write_evaluation(self, evaluation: Evaluation, model: RunRecord) -> None:
        """Write `metrics.json` and `per_user.parquet`.

        Parameters
        ----------
        evaluation
            Of the run's own lists: an evaluation with another popularity dial or re-ranker is refused.
        model
            The model that was measured; refused where the run holds another one by now.
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
        """Put another curve of the popularity dial, and so another choice, into the manifest of a finished run.

        Parameters
        ----------
        curve
            The curve with its choice.
        model
            The model that the curve was measured with; refused where the run holds another one by now.
        """
        with self._held_for(model):
            manifest = self.read_json(MANIFEST)
            self._write(MANIFEST, as_json(manifest | {"dial": finite(curve.as_json())}))

    @contextmanager
    def _held_for(self, model: RunRecord) -> Iterator[None]:
        """Nobody replaces the run while something measured with its model is written into it."""
        with hold_folder(settled(self.path), self.path):
            if model.digest != digest(self.path / TENSORS):
                raise InputError(
                    f"{self.path} was replaced while its model was measured, so nothing was written; "
                    f"measure the new one with `dpaa evaluate {self.path}`"
                )
            yield

    def _write(self, name: str, content: str) -> None:
        write_file(self.path / name, content, ROOM)

    # ------------------------------------------------------------------ reading

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder."""
        file = self.path / name
        settled(self.path)
        if not self.path.is_dir():
            raise InputError(f"there is no run folder {self.path}; make one with `dpaa train`")
        if not file.exists():
            unfinished = name == MANIFEST and self.has_config
            remedy = "finish it with `dpaa train … --resume`" if unfinished else "make a run with `dpaa train`"
            remedy += ", or at its checkpoint with --finish" if unfinished and self.checkpoints.file.exists() else ""
            state = "an unfinished run" if unfinished else "not a run folder"
            raise InputError(f"{self.path} is {state} (it has no {name}); {remedy}")
        return read_json(file, SMALL_JSON, "restore it or train again")

    def read_evaluation(self) -> dict[str, Any] | None:
        """`metrics.json`, made with the model that is here; None where the run was not evaluated."""
        file = self.path / METRICS
        if not file.is_file():
            return None
        content = self.read_json(METRICS)
        again = f"make it again with `dpaa evaluate {self.path}`"
        try:
            measured = Measured.model_validate(content)
        except ValidationError:
            raise InputError(f"{file} lacks metrics or protocol; {again}") from None
        if measured.model is not None and measured.model != digest(self.path / TENSORS):
            raise InputError(f"{file} was measured with another model than the one beside it; {again}")
        return content

    def read(self, device: str = "cpu") -> RunRecord:
        """A finished run, every file checked before it is believed."""
        manifest, about = self.read_manifest()
        configured = self._read_config(manifest.get("method_origin"))
        users = self._read_table(USERS, [Column.USER])
        items = self._read_table(ITEMS, [Column.ITEM])
        user_ids, item_ids = self._ascending(USERS, users[Column.USER]), self._ascending(ITEMS, items[Column.ITEM])
        pairs = self._read_pairs(user_ids, item_ids)
        graph = BipartiteGraph.from_pairs(pairs, len(user_ids), len(item_ids), device)
        method: Method = attach(configured, graph)
        method.load_state(self._read_tensors(method.state_shapes()))
        candidates = self._candidates(items)
        self._check_bound(about)
        known = read_attributes(self.path, item_ids, about.files.get(ATTRIBUTES_FILE), "restore it or train again")
        edges, read = self.path / EDGES, about.files.get(TENSORS) or digest(self.path / TENSORS)
        return RunRecord(
            *(method, user_ids, item_ids, pairs, candidates, manifest, self.path, edges, known, read),
            popularity=self._popularity(items),
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
            raise InputError(f"{file} has a pair twice; restore it or train again")
        columns: dict[str, torch.Tensor] = {}
        for name in (*names, *back):
            floats = edges[name].dtype in (pl.Float32, pl.Float64)
            if not floats or not edges[name].is_finite().fill_null(value=False).all():
                raise InputError(f"column {name!r} of {file} must hold decimal numbers; train again")
            columns[name] = torch.from_numpy(edges[name].to_numpy()[order])
        return [EdgeWeights(columns[name], columns.get(name.replace("_", "_back_"))) for name in names]

    def read_manifest(self) -> tuple[dict[str, Any], Manifest]:
        """`manifest.json` as it is, and what is relied on, checked."""
        manifest = self.read_json(MANIFEST)
        if manifest.get("format") != FORMAT:
            found = manifest.get("format")
            raise InputError(f"{self.path} has run format {found!r}, this version reads {FORMAT}; train again")
        try:
            return manifest, Manifest.model_validate(manifest)
        except ValidationError as error:
            wrong = WRONG[str(error.errors()[0]["loc"][0])]
            raise InputError(f"{self.path / MANIFEST} {wrong}; restore it or train again") from None

    def _check_bound(self, about: Manifest) -> None:
        """Refuse files of another run."""
        for name in BOUND:
            if name in about.files and about.files[name] != digest(self.path / name):
                raise InputError(
                    f"{self.path / name} is not the file this run was written with (its digest is not the one in "
                    f"{MANIFEST}); restore it or train again"
                )

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
        edges = self._read_table(EDGES, [Column.USER, Column.ITEM])
        count = edges[Column.COUNT] if Column.COUNT in edges.columns else None
        if count is not None:
            count = checked_counts(count, self.path / EDGES, "train again")
        try:
            users, items = look_up(edges[Column.USER], user_ids, "user"), look_up(edges[Column.ITEM], item_ids, "item")
        except InputError as error:
            reason = str(error).partition(";")[0]
            raise InputError(f"{self.path / EDGES} belongs to another run ({reason}); train again") from None
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

    def _popularity(self, items: pl.DataFrame) -> NDArray[Any] | None:
        if RECENT not in items.columns:
            return None
        if items[RECENT].dtype != pl.Float32 or not items[RECENT].is_finite().fill_null(value=False).all():
            raise InputError(f"column {RECENT!r} of {self.path / ITEMS} must hold decimal numbers; train again")
        return items[RECENT].to_numpy()

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
            raise InputError(f"{file} is missing; restore it or train again") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{file} is not a readable Parquet file ({reason(error)}); train again") from None

    def _read_tensors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
        """Names, shapes and types are compared with the header before anything is allocated."""
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
                    if tuple(part.get_shape()) != shape or part.get_dtype() != "F32":
                        found = f"{part.get_dtype()} {tuple(part.get_shape())}"
                        raise InputError(
                            f"{file}: tensor {name!r} is {found}, expected F32 {shape}; it belongs to another run"
                        )
                tensors = {name: opened.get_tensor(name) for name in shapes}
        except FileNotFoundError:
            raise InputError(f"{file} is missing; restore it or train again") from None
        except (SafetensorError, OSError) as error:
            raise InputError(f"{file} is not a readable safetensors file ({reason(error)}); train again") from None
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise InputError(f"{file}: tensor {name!r} has values that are not numbers; train again")
        return tensors


def _config(method: Method) -> dict[str, Any]:
    """Every setting, resolved, with the method's name."""
    return {"method": method.name} | method.get_params()


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
    """Nobody else writes this folder; taken before anything is looked at or moved."""
    with ExitStack() as hold:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            hold.enter_context(locked(lock_of(target)))
        except OSError as error:
            raise InputError(f"cannot write {shown} ({reason(error)}); choose another folder with --out") from None
        yield


def versions() -> dict[str, str]:
    """What the run was made with."""
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
    """Write a run folder from a model; it appears whole or not at all.  `history`: lines of its training."""
    target = check_folder_name(folder)
    with hold_folder(target, folder):
        if target.exists():
            _check_no_frontier(target, folder)
            there = RunFolder(target)
            if not target.is_dir() or (there.filled and not there.has_config):
                raise InputError(f"{folder} holds something else than a run; choose another folder")
            if there.filled and not overwrite:
                raise InputError(f"{folder} holds a run; pass overwrite=True or choose another folder")
        with whole_folder(target, ROOM) as fresh:
            run = RunFolder(fresh)
            run.write_config(model.method)
            if history:
                run.write_history(history)
            run.write_model(model)
