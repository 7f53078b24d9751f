"""What to train with which budget on which data: shared by all tables, so that none trains what another has."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from dpaa._io import LARGE_JSON, check_within, read_text
from dpaa.data.dataset import ABOUT_FILE, Dataset, from_files, read_dataset
from dpaa.data.ids import Column
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.published import PUBLISHED, published
from dpaa.data.sources.severity import distinct_pairs, read_pairs, with_severity
from dpaa.errors import InputError
from dpaa.methods import find_method
from dpaa.methods._options import known
from dpaa.methods.dpaa import DPAA
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.reproduction import _paper as paper
from dpaa.reproduction._paper import ROWS, SIMPLE, Budget
from dpaa.reproduction._results import ResultStore, RunResult, Study
from dpaa.reproduction._trainings import RunSpec, fingerprint_of, key_of, read_result, run_one
from dpaa.tuning.processes import in_pool
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import TRAINED

Values = dict[str, Any]
"""Hyperparameters."""
TITLES = {"coat": "Coat", "kuairec": "KuaiRec", "yahoo-r3": "Yahoo! R3"}
LAYERS = {"coat": 2, "kuairec": 4, "yahoo-r3": 2}
"""The paper's."""
LIST_NAMES = {"train": ("train.txt",), "valid": ("valid.txt", "val.txt"), "test": ("test.txt", "test_ood.txt")}


def real_dataset(name: str, folder: Path) -> Dataset | None:
    """Read the official files, or a split in list form.

    Parameters
    ----------
    name : one of `TITLES`
    folder : with the files

    Returns
    -------
    the dataset; None for KuaiRec without its training part.  Candidates of KuaiRec in list form are all items but those
    of `not_candidate.txt`, else the items of validation and test
    """
    if _is_official(name, folder):
        return published(name, folder)
    if name == "kuairec" and not (folder / "train.txt").exists():
        _listed(folder, "valid", name)
        return None
    data = from_files(*(_listed(folder, split, name) for split in LIST_NAMES), name=name)
    if name != "kuairec":
        return data
    allowed = pl.concat([data.frame("valid")[Column.ITEM], data.frame("test")[Column.ITEM]]).unique()
    allowed = data.item_ids.filter(data.item_ids.is_in(allowed.implode()))
    if (barred := folder / "not_candidate.txt").exists():
        ids = pl.Series(read_text(barred, LARGE_JSON).split(), dtype=pl.String)
        allowed = data.item_ids.filter(~data.item_ids.cast(pl.String).is_in(ids.implode()))
    frames = {split: data.frame(split) for split in ("train", "valid", "test")}
    about = {key: value for key, value in data.about.items() if key != "counts"} | {VALIDATION_EXPOSURE: "unbiased"}
    return Dataset.of(frames, name="kuairec", candidates=allowed, about=about, notes=data.notes)  # type: ignore[arg-type]


def exposed_pairs(folder: Path) -> pl.DataFrame:
    """Read the positives of KuaiRec's small matrix, where every user saw every video.

    Parameters
    ----------
    folder : with the official files, or with `valid.txt` and `test.txt`

    Returns
    -------
    pairs of user and item
    """
    if _is_official("kuairec", folder):
        return distinct_pairs(published("kuairec", folder), ("valid", "test"))
    return read_pairs([str(_listed(folder, split, "kuairec")) for split in ("valid", "test")])[0]


def _is_official(name: str, folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds the dataset's files")
    folders = (folder, folder / "data") if name == "kuairec" else (folder,)
    return any((home / file).exists() for home in folders for file in PUBLISHED[name].files)


def _listed(folder: Path, split: str, name: str) -> Path:
    """The file of a split in list form."""
    files = [folder / file for file in LIST_NAMES[split] if (folder / file).exists()]
    if not files:
        wanted = f"neither {' and '.join(PUBLISHED[name].files)} nor {' or '.join(LIST_NAMES[split])}"
        raise InputError(f"{folder} has {wanted}; give the official files, or train.txt, valid.txt and test.txt")
    return files[0]


AS_PRINTED = "dpaa-as-printed"
"""Has the paper's own C, η and δ, whatever the budget; only learning rate and size are the budget's."""


@dataclass
class Plan:
    """A reproduction: a budget, what the call changes of it, the data, and where results are kept.

    Parameters
    ----------
    budget : severities, seeds and tuning
    folders : dataset (a key of `TITLES`) → folder with its files
    results : folder of results; what is in it is not trained again
    work : folder of prepared datasets, pre-trained models and unfinished trainings
    given_rows : methods instead of the budget's
    given_seeds, given_severities : instead of the budget's
    jobs : trainings at a time, one core each
    say : receives a line per training
    """

    budget: Budget
    folders: dict[str, Path]
    results: Path
    work: Path
    given_rows: tuple[str, ...] = ()
    given_seeds: int | None = None
    given_severities: tuple[float, ...] = ()
    jobs: int = 1
    say: Callable[[str], None] = lambda _line: None
    trained: int = field(default=0, init=False)
    reused: int = field(default=0, init=False)
    _severity_folders: dict[str, Path] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The methods, each once under its own name; most-popular always, as what every method has to beat."""
        rows: tuple[str, ...] = (*ROWS, *SIMPLE) if self.budget.simple_methods else ROWS
        if self.given_rows:
            rows = tuple(find_method(row).name for row in self.given_rows)
        elif not find_spec("implicit"):  # an extra: pip install 'dpaa[references]'
            rows = tuple(row for row in rows if row != "als")
        return tuple(dict.fromkeys(rows if "most-popular" in rows else ("most-popular", *rows)))

    @property
    def severities(self) -> tuple[float, ...]:
        """The severities, ascending."""
        return tuple(sorted(set(self.given_severities or self.budget.severities)))

    @cached_property
    def real(self) -> dict[str, Dataset]:
        """The real datasets the user has, in the paper's order."""
        datasets = {name: real_dataset(name, self.folders[name]) for name in TITLES if name in self.folders}
        return {name: data for name, data in datasets.items() if data is not None}

    @property
    def missing(self) -> list[str]:
        """Datasets of the paper that are not shown."""
        return [f"{TITLES[name]} is not shown: add --{name} DIR" for name in TITLES if name not in self.real]

    def seeds(self, data: str = "") -> range:
        """Return the seeds of trainings on a dataset.

        Parameters
        ----------
        data : key of the dataset; default: any but Coat

        Returns
        -------
        0, 1, …
        """
        return range(self.given_seeds or (self.budget.coat_seeds if data == "coat" else self.budget.seeds))

    # ------------------------------------------------------------------ trainings

    @cached_property
    def real_results(self) -> list[RunResult]:
        """Every row on every real dataset."""
        folders = {name: self.prepared(data, name) for name, data in self.real.items()}
        specs = [
            self._spec(name, folder, method, method, self.chosen(method, name, folder), seed)
            for name, folder in folders.items()
            for method in self.rows
            for seed in (self.seeds(name) if find_method(method).seeded else [0])
        ]
        return self.run(specs, "overall")

    @cached_property
    def severity_results(self) -> list[RunResult]:
        """Every row at every severity."""
        specs = [
            self.severity_spec(method, method, severity, seed)
            for severity in self.severities
            for method in self.rows
            for seed in self.seeds()
        ]
        return self.run(specs, "severity")

    def run(self, specs: Sequence[RunSpec], kind: str) -> list[RunResult]:
        """Train what is not stored yet.

        Parameters
        ----------
        specs : the trainings
        kind : under which results are stored

        Returns
        -------
        results in the order of the specs
        """
        store = ResultStore(self.results, kind, RunResult)
        keys = {spec.key: spec for spec in specs}
        # A damaged result is reported before any training.
        missing = [spec for spec in keys.values() if read_result(spec, store) is None]
        self.reused += len(keys) - len(missing)
        self.say(f"{len(keys):,} trainings, {len(keys) - len(missing):,} already in {self.results}")
        for (spec, *_), result in in_pool(run_one, [(spec, store, self.work) for spec in missing], self.jobs):
            self.trained += 1
            outcome = result.details.get("failed") or f"recall@20 {result.value('recall@20') or 0.0:.4f}"
            self.say(f"{self.trained} {spec.data} {spec.label} seed {result.seed}: {outcome}")
        return [one for spec in specs if (one := read_result(spec, store)) is not None]

    def severity_spec(self, method: str, row: str, severity: float, seed: int, change: Values | None = None) -> RunSpec:
        """Describe a training at a severity.

        Parameters
        ----------
        method, row : name of the method, and of the row of a table
        severity, seed : of the dataset and the training
        change : hyperparameters that differ from the chosen ones

        Returns
        -------
        the training
        """
        # Hyperparameters come from the first draw of the level: seeds of the data must not be tuned to.
        level = self.tuned_severity(severity)
        level = severity if level is None else level
        chosen = self.chosen(method, f"s={level:g}", self.severity_folder(level))
        folder = self.severity_folder(severity, 0 if self.budget.one_draw else seed)
        return self._spec(f"s={severity:g}", folder, method, row, chosen | (change or {}), seed)

    def _spec(self, data: str, folder: Path, method: str, row: str, hyperparameters: Values, seed: int) -> RunSpec:
        """Common hyperparameters go to the methods that have them; the row's own take precedence.

        For tuned rows the pre-trained model has the common ones alone, as it had in the trials.
        """
        kind = find_method(method)
        shared, own = known(PAPER_TRAINING | self.fixed(data), method), {"seed": seed if kind.seeded else 0}
        plain = shared | own if self.is_tuned(method) and issubclass(kind, DPAA) else None
        return RunSpec(data, folder, row, method, shared | hyperparameters | own, plain, self.budget.protocol)

    def prepared(self, data: Dataset, name: str) -> Path:
        """Write a dataset to the work folder, unless it is there already: other processes may be reading it.

        Parameters
        ----------
        data : the dataset
        name : of its folder

        Returns
        -------
        the folder
        """
        # Compared by content: what another call left under the name may be of other data.
        folder = check_within(self.work / name, self.work)
        if not (folder / ABOUT_FILE).exists() or fingerprint_of(folder) != data.fingerprint:
            data.write(folder, overwrite=True)
        return folder

    @cached_property
    def _exposed(self) -> Any:
        if "kuairec" not in self.folders:
            raise InputError(
                "severity data are made from KuaiRec's small matrix; name its folder with --data kuairec=DIR"
            )
        return exposed_pairs(self.folders["kuairec"])

    def severity_folder(self, severity: float, seed: int = 0) -> Path:
        """Prepare the dataset of a severity.

        Parameters
        ----------
        severity, seed : 0 = no bias; seed of the draw

        Returns
        -------
        its folder
        """
        name = f"kuairec-s{severity:g}-seed{seed}"
        if name not in self._severity_folders:
            self._severity_folders[name] = self.prepared(with_severity(self._exposed, severity, seed, name=name), name)
        return self._severity_folders[name]

    # ------------------------------------------------------------------ hyperparameters

    def fixed(self, data: str) -> dict[str, Any]:
        """Return the hyperparameters that the budget sets on a dataset.

        Parameters
        ----------
        data : key of a real dataset, or a severity such as "s=5"

        Returns
        -------
        name → value
        """
        return {"layers": LAYERS.get(data, LAYERS["kuairec"])} | self.budget.hyperparameters

    def is_tuned(self, method: str) -> bool:
        """Tell whether the budget tunes a method: those that have a grid, but for DPAA as the paper reports it.

        Parameters
        ----------
        method : its name

        Returns
        -------
        whether it does
        """
        return self.budget.tuning is not None and bool(find_method(method).grid) and method != AS_PRINTED

    def tuned_severity(self, severity: float) -> float | None:
        """Find the nearest severity at which methods are tuned, the lower of two as near.

        Parameters
        ----------
        severity : of the training

        Returns
        -------
        the severity; None if nothing is tuned
        """
        levels = self.budget.tuning.severities if self.budget.tuning else ()
        return min(levels, key=lambda level: (abs(level - severity), level), default=None)

    def chosen(self, method: str, data: str, folder: Path) -> dict[str, Any]:
        """Return the hyperparameters that validation chose on a dataset, or that the paper reports (`AS_PRINTED`).

        Parameters
        ----------
        method, data, folder : as in `study`

        Returns
        -------
        name → value; empty where nothing is tuned
        """
        if method == AS_PRINTED:
            return paper.reported(data)
        return self.study(method, data, folder).settings if self.is_tuned(method) else {}

    def study(self, method: str, data: str, folder: Path) -> Study:
        """Read the stored choice of hyperparameters on a dataset, or make it by a new study.

        Parameters
        ----------
        method : its name
        data, folder : key and folder of the dataset

        Returns
        -------
        the study
        """
        tuning = self.budget.tuning
        assert tuning is not None
        fingerprint, fixed = fingerprint_of(folder), known(self.fixed(data), method)
        key = key_of(method, fingerprint, fixed, tuning.effort())
        store = ResultStore(self.results, "tuned", Study)
        if stored := store.read(key):
            return stored
        from dpaa.tuning.tune import tune  # Optuna is an extra

        self.say(f"{data} {method}: hyperparameters are chosen on validation")
        began = time.monotonic()
        rates = known({"learning_rate": tuning.learning_rates}, method) if tuning.learning_rates else {}
        searched = len(search_space(find_method(method), tuning.space, fixed, rates))
        per_one = tuning.trials_per_hyperparameter
        study = tune(
            self.work / "tuned" / key,
            read_dataset(folder),
            method,
            space=tuning.space,
            trials=tuning.trials if per_one is None else per_one * searched,
            values=rates or None,
            settings=fixed,
            defaults=known(PAPER_TRAINING, method),
            seeds=0,
            jobs=self.jobs,
            prune_after=tuning.prune_after,
            say=self.say,
        )
        assert study.best.value is not None
        result = Study(
            data=data,
            method=method,
            fingerprint=fingerprint,
            settings=study.best.settings,
            valid=study.best.value,
            trials=sum(trial.state in TRAINED for trial in study.trials),
            seconds=round(time.monotonic() - began, 1),
            fixed=fixed,
            tuning=tuning.effort(),
            tried=[asdict(trial) for trial in study.trials],
            protocol=self.budget.protocol,
        )
        store.write(key, result)
        return result
