"""What to reproduce with which budget on which data: shared by all tables, so that none trains what another has."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpaa._text import counted
from dpaa.data.dataset import Dataset
from dpaa.methods import find_method
from dpaa.methods.dpaa import DPAA
from dpaa.methods.settings import PAPER_TRAINING, make_settings
from dpaa.reproduction.budget import Budget, nearest
from dpaa.reproduction.results import ResultStore, RunResult, TunedSettings
from dpaa.reproduction.sources import LAYERS, TITLES, Sources
from dpaa.reproduction.trainings import Runner, RunSpec, known_settings, parse_label
from dpaa.reproduction.tuned import can_be_tuned, tuned_settings

MOST_POPULAR = "most-popular"
DRAWN = (MOST_POPULAR, "lightgcn", "dpaa", "dpaa-as-printed")
"""Rows that are also trained on further draws of the severity data, where those are apart."""


@dataclass
class Plan:
    """A reproduction."""

    budget: Budget
    sources: Sources
    runner: Runner
    given_rows: tuple[str, ...] = ()
    """A method, or a method with settings, which then are not tuned."""
    given_seeds: int | None = None
    given_severities: tuple[float, ...] = ()
    given_settings: dict[str, Any] = field(default_factory=dict)
    """For every method that has them."""
    _severity_folders: dict[tuple[float, int], Path] = field(default_factory=dict, init=False)
    _studies: dict[tuple[str, Path], TunedSettings] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Most-popular is always among them: where exposure is even, popular items are liked."""
        rows = [row for row in self.budget.rows if row not in self.left_out]
        if self.given_rows:  # each once, under the method's own name
            rows = list(dict.fromkeys(" ".join([parse_label(row)[0], *row.split()[1:]]) for row in self.given_rows))
        return tuple(rows) if MOST_POPULAR in rows else (MOST_POPULAR, *rows)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Rows of the budget that cannot be made here, and why."""
        if self.given_rows or "als" not in self.budget.rows or find_spec("implicit"):
            return {}
        return {"als": "als is left out: it needs packages that are not installed (pip install 'dpaa[references]')"}

    @property
    def severities(self) -> tuple[float, ...]:
        """Ascending."""
        return tuple(sorted(set(self.given_severities or self.budget.severities)))

    @property
    def seeds(self) -> range:
        """On severity data, and on real data but Coat."""
        return range(self.given_seeds or self.budget.seeds)

    def seeds_on(self, name: str) -> range:
        """On a real dataset."""
        return range(self.given_seeds or self.budget.coat_seeds) if name == "coat" else self.seeds

    @cached_property
    def real(self) -> dict[str, Dataset]:
        """The real datasets the user has."""
        return self.sources.real()

    @cached_property
    def imported(self) -> dict[str, list[RunResult]]:
        """Results made elsewhere of the real datasets that the user has not, in the paper's order."""
        store = ResultStore(self.runner.results, "overall", RunResult)
        every = [one for key in store.keys if (one := store.read(key)) is not None and one.imported]
        found = {name: [one for one in every if one.data == name] for name in TITLES if name not in self.real}
        return {name: results for name, results in found.items() if results}

    def in_words(self) -> str:
        """The budget, and what the call changed of it."""
        changed = [counted(self.given_seeds, "seed", "seeds")] if self.given_seeds else []
        changed += [f"severity {', '.join(f'{one:g}' for one in self.severities)}"] if self.given_severities else []
        changed += [f"{name} {value}" for name, value in self.given_settings.items()]
        here = f" In this call: {'; '.join(changed)}." if changed else ""
        return f"Budget {self.budget.name}: {self.budget.about}.{here}"

    def check(self) -> None:
        """Refuse wrong rows and settings before anything is computed."""
        for label in self.rows:
            method, own = parse_label(label)
            make_settings(find_method(method).settings_type, known_settings(self.given_settings, method) | own, method)
        fields = {name for label in self.rows for name in find_method(label.split()[0]).settings_type.model_fields}
        for name in self.given_settings:
            if name not in fields:
                make_settings(find_method("lightgcn").settings_type, {name: 0}, "lightgcn")

    # ------------------------------------------------------------------ trainings

    def common(self, data: str) -> dict[str, Any]:
        """Settings of every method on a dataset: a real one, or KuaiRec's of a severity, such as "s=5"."""
        return self.budget.settings | {"layers": LAYERS.get(data, LAYERS["kuairec"])} | self.given_settings

    def settings_in_force(self, data: str) -> dict[str, Any]:
        """The same with the paper's way of training beneath: the defaults are ours, and may change."""
        return PAPER_TRAINING | self.common(data)

    @cached_property
    def real_results(self) -> list[RunResult]:
        """Every row on every real dataset."""
        specs: list[RunSpec] = []
        for name, data in self.real.items():
            folder = self.runner.prepared(data, name)
            for label in self.rows:
                method, settings = self.settings_of(label, name, folder)
                seeds = self.seeds_on(name) if find_method(method).seeded else [0]
                specs += [self._spec(name, folder, label, label, method, settings, seed) for seed in seeds]
        return self.runner.run(specs, "overall")

    @cached_property
    def severity_results(self) -> list[RunResult]:
        """Every row at every severity; the seed is that of the data too, unless the budget draws data apart."""
        levels, rows, seeds = self.severities, self.rows, self.seeds
        specs = [self.severity_spec(label, label, s, seed, {}) for s in levels for label in rows for seed in seeds]
        return self.runner.run(specs, "severity")

    @cached_property
    def draw_results(self) -> dict[int, list[RunResult]]:
        """The main rows on each draw of the severity data, with one seed of training."""
        rows = [label for label in self.rows if label.split()[0] in DRAWN]
        levels, draws = self.severities, range(self.budget.draws or 0)
        specs = {
            draw: [self.severity_spec(label, label, s, 0, {}, draw) for s in levels for label in rows] for draw in draws
        }
        results = iter(self.runner.run([spec for of_draw in specs.values() for spec in of_draw], "severity"))
        return {draw: [next(results) for _ in of_draw] for draw, of_draw in specs.items()}

    def severity_spec(
        self, label: str, row: str, severity: float, seed: int, change: dict[str, Any], draw: int = 0
    ) -> RunSpec:
        """A training of the label's method at a severity, with a change of its settings, for a row of a table."""
        method, settings = self.severity_settings(label, severity)
        folder = self.severity_folder(severity, seed if self.budget.draws is None else draw)
        return self._spec(f"s={severity:g}", folder, label, row, method, settings | change, seed)

    def _spec(
        self, data: str, folder: Path, label: str, row: str, method: str, settings: dict[str, Any], seed: int
    ) -> RunSpec:
        """Common settings go to the methods that have them, the row's own win.

        Where they were tuned, the pre-trained model has the common ones, as it had in the trials.
        """
        kind = find_method(method)
        shared, own = known_settings(self.settings_in_force(data), method), {"seed": seed if kind.seeded else 0}
        plain = shared | own if self.is_tuned(label) and issubclass(kind, DPAA) else None
        return RunSpec(data, folder, row, method, shared | settings | own, plain, self.budget.protocol)

    def severity_folder(self, severity: float, seed: int) -> Path:
        """The prepared dataset of a severity."""
        if (severity, seed) not in self._severity_folders:
            for level, data in self.sources.severity(sorted({*self.severities, severity}), seed):
                self._severity_folders[level, seed] = self.runner.prepared(data, data.name)
        return self._severity_folders[severity, seed]

    # ------------------------------------------------------------------ settings

    def severity_settings(self, label: str, severity: float) -> tuple[str, dict[str, Any]]:
        """Method and settings of a row: those tuned at the nearest severity where methods are tuned."""
        if not self.is_tuned(label) or self.budget.tuning is None:
            return parse_label(label)
        level = nearest(severity, self.budget.tuning.severities)
        return self.settings_of(label, f"s={level:g}", self.severity_folder(level, 0))

    def settings_of(self, label: str, data: str, folder: Path) -> tuple[str, dict[str, Any]]:
        """Method and settings of a row on a dataset."""
        return (label, self.study(label, data, folder).settings) if self.is_tuned(label) else parse_label(label)

    def is_tuned(self, label: str) -> bool:
        """A row with settings of its own is taken as it is."""
        return self.budget.tuning is not None and len(label.split()) == 1 and can_be_tuned(label)

    def study(self, label: str, data: str, folder: Path) -> TunedSettings:
        """What was tuned, once."""
        assert self.budget.tuning is not None
        method = parse_label(label)[0]
        if (method, folder) not in self._studies:
            found = tuned_settings(data, folder, method, self.budget, self.common(data), self.runner)
            self._studies[method, folder] = found
        return self._studies[method, folder]
