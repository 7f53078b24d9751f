"""What to train with which budget on which data: shared by all tables, so that none trains what another has."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpaa._text import counted
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.errors import InputError
from dpaa.methods import find_method
from dpaa.methods.dpaa import DPAA
from dpaa.methods.graph_method import PAPER_TRAINING
from dpaa.reproduction._budget import Budget
from dpaa.reproduction._results import ResultStore, RunResult, TunedSettings
from dpaa.reproduction._sources import LAYERS, Sources
from dpaa.reproduction._trainings import Runner, RunSpec, key_of, known_settings, parse_label
from dpaa.tuning.space import search_space
from dpaa.tuning.trial import TRAINED

MOST_POPULAR = "most-popular"


@dataclass
class Plan:
    """A reproduction: a budget, what the call changed of it, and the data.

    Parameters
    ----------
    budget, sources, runner : what to train, on what, and by whom
    given_rows : methods instead of the budget's; one with hyperparameters of its own is not tuned
    given_seeds, given_severities : instead of the budget's
    given_settings : hyperparameters of every method that has them
    """

    budget: Budget
    sources: Sources
    runner: Runner
    given_rows: tuple[str, ...] = ()
    given_seeds: int | None = None
    given_severities: tuple[float, ...] = ()
    given_settings: dict[str, Any] = field(default_factory=dict)
    _severity_folders: dict[tuple[float, int], Path] = field(default_factory=dict, init=False)
    _studies: dict[tuple[str, Path], TunedSettings] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Each row once, under the method's own name; most-popular always, as what every method has to beat."""
        rows = [row for row in self.budget.rows if row not in self.left_out]
        if self.given_rows:
            rows = list(dict.fromkeys(" ".join([parse_label(row)[0], *row.split()[1:]]) for row in self.given_rows))
        return tuple(rows) if MOST_POPULAR in rows else (MOST_POPULAR, *rows)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Rows of the budget that cannot be trained here, and why."""
        if self.given_rows or "als" not in self.budget.rows or find_spec("implicit"):
            return {}
        return {"als": "als is left out: it needs packages that are not installed (pip install 'dpaa[references]')"}

    @property
    def severities(self) -> tuple[float, ...]:
        """Ascending."""
        return tuple(sorted(set(self.given_severities or self.budget.severities)))

    @cached_property
    def real(self) -> dict[str, Dataset]:
        """The real datasets the user has."""
        return self.sources.real()

    def seeds(self, data: str = "") -> range:
        """Seeds of training on a dataset."""
        return range(self.given_seeds or (self.budget.coat_seeds if data == "coat" else self.budget.seeds))

    def description(self) -> str:
        """The budget, and what the call changed of it."""
        changed = [counted(self.given_seeds, "seed", "seeds")] if self.given_seeds else []
        changed += [f"severity {', '.join(f'{one:g}' for one in self.severities)}"] if self.given_severities else []
        changed += [f"{name} {value}" for name, value in self.given_settings.items()]
        here = f" In this call: {'; '.join(changed)}." if changed else ""
        return f"Budget {self.budget.name}: {self.budget.about}.{here}"

    def check(self) -> None:
        """Refuse wrong rows and hyperparameters before anything is computed."""
        for label in self.rows:
            method, own = parse_label(label)
            find_method(method)(**known_settings(self.given_settings, method) | own)
        fields = {name for label in self.rows for name in find_method(label.split()[0]).hyperparameters.model_fields}
        for name in self.given_settings:
            if name not in fields:  # LightGCN has none of that name either, and its message proposes a similar one
                find_method("lightgcn")(**{name: 0})

    # ------------------------------------------------------------------ trainings

    @cached_property
    def real_results(self) -> list[RunResult]:
        """Every row on every real dataset."""
        specs: list[RunSpec] = []
        for name, data in self.real.items():
            folder = self.runner.prepared(data, name)
            for label in self.rows:
                method, settings = self.settings_of(label, name, folder)
                seeds = self.seeds(name) if find_method(method).seeded else [0]
                specs += [self._spec(name, folder, label, label, method, settings, seed) for seed in seeds]
        return self.runner.run(specs, "overall")

    @cached_property
    def severity_results(self) -> list[RunResult]:
        """Every row at every severity."""
        specs = [
            self.severity_spec(label, label, severity, seed)
            for severity in self.severities
            for label in self.rows
            for seed in self.seeds()
        ]
        return self.runner.run(specs, "severity")

    def severity_spec(
        self, label: str, row: str, severity: float, seed: int, change: dict[str, Any] | None = None
    ) -> RunSpec:
        """A training of the label's method at a severity for a row of a table, with a change of hyperparameters."""
        method, settings = parse_label(label)
        level = self.budget.tuned_severity(severity)
        if self.is_tuned(label) and level is not None:
            method, settings = self.settings_of(label, f"s={level:g}", self.severity_folder(level))
        folder = self.severity_folder(severity, 0 if self.budget.one_draw else seed)
        return self._spec(f"s={severity:g}", folder, label, row, method, settings | (change or {}), seed)

    def _spec(
        self, data: str, folder: Path, label: str, row: str, method: str, settings: dict[str, Any], seed: int
    ) -> RunSpec:
        """Common hyperparameters go to the methods that have them; the row's own take precedence.

        For tuned rows the pre-trained model has the common ones alone, as it had in the trials.
        """
        kind = find_method(method)
        shared, own = known_settings(self.common(data), method), {"seed": seed if kind.seeded else 0}
        plain = shared | own if self.is_tuned(label) and issubclass(kind, DPAA) else None
        return RunSpec(data, folder, row, method, shared | settings | own, plain, self.budget.protocol)

    def severity_folder(self, severity: float, seed: int = 0) -> Path:
        """The prepared dataset of a severity and a draw."""
        if (severity, seed) not in self._severity_folders:
            for level, data in self.sources.severity(sorted({*self.severities, severity}), seed):
                self._severity_folders[level, seed] = self.runner.prepared(data, data.name)
        return self._severity_folders[severity, seed]

    # ------------------------------------------------------------------ hyperparameters

    def fixed(self, data: str) -> dict[str, Any]:
        """Hyperparameters that the budget or the call sets on a dataset: a real one, or a severity such as "s=5"."""
        return self.budget.settings | {"layers": LAYERS.get(data, LAYERS["kuairec"])} | self.given_settings

    def common(self, data: str) -> dict[str, Any]:
        """The same over the paper's training: the methods' defaults are ours, and may change."""
        return PAPER_TRAINING | self.fixed(data)

    def settings_of(self, label: str, data: str, folder: Path) -> tuple[str, dict[str, Any]]:
        """Method and hyperparameters of a row on a dataset."""
        return (label, self.study(label, data, folder).settings) if self.is_tuned(label) else parse_label(label)

    def is_tuned(self, label: str) -> bool:
        """Whether a row is tuned: methods that have something to choose, in rows that do not set it themselves."""
        return self.budget.tuning is not None and len(label.split()) == 1 and bool(find_method(label).grid)

    def study(self, label: str, data: str, folder: Path) -> TunedSettings:
        """The hyperparameters that validation chose on a dataset: stored ones, else those of a new study."""
        method = find_method(label).name
        if (method, folder) not in self._studies:
            self._studies[method, folder] = self._tuned(method, data, folder)
        return self._studies[method, folder]

    def _tuned(self, method: str, data: str, folder: Path) -> TunedSettings:
        tuning, runner = self.budget.tuning, self.runner
        assert tuning is not None
        dataset, kind = read_dataset(folder), find_method(method)
        fixed = known_settings(self.fixed(data), method)
        key = key_of(method, dataset.fingerprint, fixed, tuning.effort())
        store = ResultStore(runner.results, "tuned", TunedSettings)
        if stored := store.read(key):
            if stored.method != method or key_of(method, stored.fingerprint, stored.fixed, stored.tuning) != key:
                raise InputError(
                    f"{store.location(key)} was chosen for another dataset, method or budget; {stored.remedy}"
                )
            return stored
        from dpaa.tuning.tune import tune  # Optuna is an extra

        runner.say(f"{data} {method}: hyperparameters are chosen on validation")
        began = time.monotonic()
        rates = known_settings({"learning_rate": tuning.learning_rates}, method) if tuning.learning_rates else {}
        study = tune(
            runner.work / "tuned" / key,
            dataset,
            method,
            space=tuning.space,
            trials=tuning.trials_for(len(search_space(kind, tuning.space, fixed, rates))),
            values=rates or None,
            settings=fixed,
            defaults=known_settings(PAPER_TRAINING, method),
            seeds=0,
            jobs=runner.jobs,
            prune_after=tuning.prune_after,
            say=runner.say,
        )
        assert study.best.value is not None
        trials, seconds = sum(one.state in TRAINED for one in study.trials), time.monotonic() - began
        runner.trained += trials - study.kept
        runner.seconds += seconds
        result = TunedSettings(
            data=data,
            method=method,
            fingerprint=dataset.fingerprint,
            settings=study.best.settings,
            valid=study.best.value,
            trials=trials,
            seconds=round(seconds, 1),
            fixed=fixed,
            tuning=tuning.effort(),
            tried=[asdict(trial) for trial in study.trials],
            protocol=self.budget.protocol,
        )
        store.write(key, result)
        return result
