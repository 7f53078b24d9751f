"""The run folder: config, manifest, history, tensors and tables; nothing pickled, every file replaced as a whole."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import dpaa
from dpaa.data.columns import Column
from dpaa.data.dataset import check_counts
from dpaa.data.ids import checked_type, look_up
from dpaa.data.pairs import Pairs
from dpaa.data.popularity import popular_items
from dpaa.data.tables import parquet_schema, read_parquet
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.methods import find_method
from dpaa.methods.settings import make_settings
from dpaa.runs.model import Model
from dpaa.training.checkpoint import CheckpointFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dpaa.evaluation.dial import DialCurve
    from dpaa.evaluation.evaluator import Evaluation
    from dpaa.methods.base import Method
    from dpaa.methods.settings import Settings
    from dpaa.training.trainer import EpochReport

CONFIG, MANIFEST, HISTORY, TENSORS = "config.json", "manifest.json", "history.jsonl", "model.safetensors"
USERS, ITEMS, EDGES = "users.parquet", "items.parquet", "edges.parquet"
METRICS, PER_USER = "metrics.json", "per_user.parquet"
GROUP, CANDIDATE = "group", "candidate"
PARTS = "parts"
"""Where an assembled method's trainings are kept until it is whole."""
FORMAT = 1
LARGEST_JSON = 10_000_000
"""Bytes; a config or manifest of ours has a few thousand."""


class RunFolder:
    """One run on disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = CheckpointFolder(self.path / "checkpoint")
        self._replaced = self.path.with_name(f".{self.path.name}-replaced")
        """Where a run that is being overwritten waits, over interruptions too."""

    @classmethod
    def begin(cls, path: str | Path, *, overwrite: bool = False, resume: bool = False) -> RunFolder:
        """A folder to write a run into: new, in place of another (`overwrite`), or an unfinished one (`resume`).

        What is overwritten waits beside until `keep` (the new run is whole) or `give_up` (it comes back).
        """
        run = cls(path)
        try:
            if run.path.exists() and (not run.path.is_dir() or any(run.path.iterdir())):
                run._check_existing(overwrite, resume)
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {run.path} ({error.strerror}); choose another folder with --out") from None
        return run

    def _check_existing(self, overwrite: bool, resume: bool) -> None:
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file; choose another folder with --out")
        torn = all(file.suffix == ".new" for file in self.path.iterdir())  # killed before the first file was whole
        if not self.has_config and not torn:
            raise InputError(f"{self.path} holds something else than a run; choose another folder with --out")
        if resume and not self.finished:
            return  # also with overwrite: what is there is the new run, half done
        if overwrite:
            shutil.rmtree(self._replaced, ignore_errors=True)
            self.path.rename(self._replaced)
        elif self.finished:
            raise InputError(f"{self.path} holds a finished run; pass --overwrite or choose another folder with --out")
        else:
            raise InputError(f"{self.path} holds an unfinished run; go on with --resume or pass --overwrite")

    def keep(self) -> None:
        """The new run is whole: what it replaces and the trainings it was made of may go."""
        self.checkpoints.remove()
        shutil.rmtree(self.path / PARTS, ignore_errors=True)
        shutil.rmtree(self._replaced, ignore_errors=True)

    def give_up(self, made: Sequence[Path]) -> None:
        """The new run came to nothing: remove it and the folders made for it that are empty; bring the old back."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._replaced.exists():
            self._replaced.rename(self.path)
        for folder in made:
            with suppress(OSError):  # not empty: somebody else works there
                folder.rmdir()

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
        self._replace(CONFIG, _as_json({"method": method.name} | method.settings.model_dump(mode="json")))

    def append_history(self, report: EpochReport) -> None:
        """A line per epoch."""
        try:
            with (self.path / HISTORY).open("a", encoding="utf-8") as history:
                history.write(json.dumps(report.line()) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot write {self.path / HISTORY} ({error.strerror}); make room and go on with --resume"
            ) from None

    def history(self) -> list[dict[str, Any]]:
        """The epochs so far, or none."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        try:
            return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{file} is not readable ({error}); restore it or train again") from None

    def cut_history(self, epochs: int) -> None:
        """Keep the first `epochs` lines: those a checkpoint has seen (the last line may be torn by a crash)."""
        file = self.path / HISTORY
        lines = file.read_text(encoding="utf-8").splitlines()[:epochs] if file.exists() else []
        self._replace(HISTORY, "".join(line + "\n" for line in lines))

    def write_history(self, lines: Sequence[dict[str, Any]]) -> None:
        """All lines at once."""
        self._replace(HISTORY, "".join(json.dumps(line) + "\n" for line in lines))

    def write_model(self, model: Model) -> None:
        """Tensors, tables and at last the manifest: from then on the run is finished."""
        graph = model.method.graph
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in model.method.tensors().items()}
        self._replace(TENSORS, lambda file: save_file(tensors, file))
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
        self._replace(USERS, user_table.write_parquet)
        self._replace(ITEMS, pl.DataFrame(columns).write_parquet)
        self._replace(EDGES, self._edges(model).write_parquet)
        self._replace(MANIFEST, _as_json({"format": FORMAT} | model.manifest | {"versions": versions()}))

    @staticmethod
    def _edges(model: Model) -> pl.DataFrame:
        if model.edges is not None:
            return pl.read_parquet(model.edges)
        pairs = model.train
        columns = [
            model.user_ids.gather(pairs.user).alias(Column.USER),
            model.item_ids.gather(pairs.item).alias(Column.ITEM),
        ]
        if pairs.count is not None:
            columns.append(pl.Series(Column.COUNT, pairs.count))
        weights = [pl.Series(name, weight.cpu().numpy()) for name, weight in model.method.message_weights()]
        return pl.DataFrame([*columns, *weights])

    def write_evaluation(self, evaluation: Evaluation) -> None:
        """`metrics.json` and `per_user.parquet`."""
        self._replace(PER_USER, evaluation.per_user.write_parquet)
        self._replace(METRICS, _as_json(finite(evaluation.as_json())))

    def write_dial(self, curve: DialCurve) -> None:
        """Put another curve of the popularity dial, and so another choice, into the manifest of a finished run."""
        manifest = self.read_json(MANIFEST)
        self._replace(MANIFEST, _as_json(manifest | {"dial": finite(curve.as_json())}))

    def _replace(self, name: str, content: str | Callable[[Path], object]) -> None:
        beside = self.path / f"{name}.new"
        try:
            if isinstance(content, str):
                beside.write_text(content, encoding="utf-8")
            else:
                content(beside)
            with beside.open("rb") as written:
                os.fsync(written.fileno())
            beside.chmod(0o666 & ~_umask())  # some writers make private files; a run is as readable as any other file
            beside.replace(self.path / name)
        except (OSError, SafetensorError, pl.exceptions.PolarsError) as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or _first_line(error)
            raise InputError(
                f"cannot write {self.path / name} ({reason}); make room or choose another folder with --out"
            ) from None

    # ------------------------------------------------------------------ reading

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of the folder."""
        file = self.path / name
        if not self.path.is_dir():
            raise InputError(f"there is no run folder {self.path}; make one with `dpaa train`")
        if not file.exists():
            unfinished = name == MANIFEST and self.has_config
            remedy = "finish it with `dpaa train … --resume`" if unfinished else "make a run with `dpaa train`"
            state = "an unfinished run" if unfinished else "not a run folder"
            raise InputError(f"{self.path} is {state} (it has no {name}); {remedy}")
        if file.stat().st_size > LARGEST_JSON:
            raise InputError(f"{file} is larger than {LARGEST_JSON / 1e6:.0f} MB; restore it or train again")
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{file} is not readable ({error}); restore it or train again") from None
        if not isinstance(content, dict):
            raise InputError(f"{file} does not hold a JSON object; restore it or train again")
        return content

    def read_model(self, device: str = "cpu") -> Model:
        """The model of a finished run, every file checked before it is believed."""
        manifest = self._read_manifest()
        method_type, settings = self._read_config()
        users = self._read_table(USERS, [Column.USER])
        items = self._read_table(ITEMS, [Column.ITEM])
        user_ids, item_ids = self._ascending(USERS, users[Column.USER]), self._ascending(ITEMS, items[Column.ITEM])
        pairs = self._read_pairs(user_ids, item_ids)
        graph = BipartiteGraph.from_pairs(pairs, len(user_ids), len(item_ids), device)
        method = method_type(graph, settings)
        method.load_tensors(self._read_tensors(method_type.tensor_shapes(graph, settings)))
        candidates = self._candidates(items)
        return Model(method, user_ids, item_ids, pairs, candidates, manifest, self.path, self.path / EDGES)

    def read_weights(self, model: Model, n_layers: int) -> list[EdgeWeights]:
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
            if not edges[name].dtype.is_float() or not edges[name].is_finite().fill_null(value=False).all():
                raise InputError(f"column {name!r} of {file} must hold decimal numbers; train again")
            columns[name] = torch.from_numpy(edges[name].to_numpy()[order])
        return [EdgeWeights(columns[name], columns.get(name.replace("_", "_back_"))) for name in names]

    def _read_manifest(self) -> dict[str, Any]:
        manifest = self.read_json(MANIFEST)
        if manifest.get("format") != FORMAT:
            found = manifest.get("format")
            raise InputError(f"{self.path} has run format {found!r}, this version reads {FORMAT}; train again")
        dataset = manifest.get("dataset")
        if not isinstance(dataset, dict) or not isinstance(dataset.get("path"), str | None):
            raise InputError(f"{self.path / MANIFEST} does not say what its dataset is; restore it or train again")
        return manifest

    def _read_config(self) -> tuple[type[Method], Settings]:
        config = self.read_json(CONFIG)
        try:
            method = find_method(str(config.pop("method", "")))
            return method, make_settings(method.settings_type, config, method.name)
        except InputError as error:
            raise InputError(f"{self.path / CONFIG} was changed: {error}") from None

    def _read_pairs(self, user_ids: pl.Series, item_ids: pl.Series) -> Pairs:
        edges = self._read_table(EDGES, [Column.USER, Column.ITEM])
        count = edges[Column.COUNT] if Column.COUNT in edges.columns else None
        if count is not None:
            check_counts(count, self.path / EDGES, "train again")
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

    def _read_table(self, name: str, columns: list[str]) -> pl.DataFrame:
        file = self.path / name
        try:
            present = parquet_schema(file)
            missing = [column for column in columns if column not in present]
            if missing:
                raise InputError(f"{file} lacks the column {missing[0]!r}; train again")
            wanted = [*columns, *(extra for extra in (Column.COUNT, CANDIDATE) if extra in present)]
            return read_parquet(file, wanted)
        except FileNotFoundError:
            raise InputError(f"{file} is missing; restore it or train again") from None
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{file} is not a readable Parquet file ({_first_line(error)}); train again") from None

    def _read_tensors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
        """Names, shapes and types are compared with the header before anything is allocated."""
        file = self.path / TENSORS
        try:
            with safe_open(file, framework="pt") as opened:
                present = set(opened.keys())
                for name, shape in shapes.items():
                    if name not in present:
                        raise InputError(f"{file} lacks the tensor {name!r}; it belongs to another run")
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
            raise InputError(f"{file} is not a readable safetensors file ({_first_line(error)}); train again") from None
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise InputError(f"{file}: tensor {name!r} has values that are not numbers; train again")
        return tensors


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


def _umask() -> int:
    """What the user's new files may not be; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def finite(content: Any) -> Any:
    """The same with null for every number that is none: JSON knows no NaN."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _as_json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def load(folder: str | Path) -> Model:
    """The model of a finished run."""
    return RunFolder(folder).read_model()
