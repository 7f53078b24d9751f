"""Every call that writes, with and without something under the name already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .world import COUNTED, TRAINED, benchmark, debias, reproduce, settings, train, tune

RESUME, OVERWRITE = "--resume", "--overwrite"
DIVERGES = settings({"learning_rate": 1e30})


@dataclass(frozen=True)
class Writer:
    """A call, and what it leaves if nobody disturbs it."""

    name: str
    needs: tuple[str, ...]
    """What is there before, by its name in the world."""
    words: tuple[str, ...]
    results: tuple[str, ...]
    """What it writes: files and folders, each of which is whole at any moment; patterns are of files."""
    resumes: tuple[str, ...] = ()
    """Words that make it go on where it was stopped."""
    finishes: tuple[str, ...] = ()
    """The call that is let finish what was interrupted, where another one than the call itself is quicker."""
    unfinished: tuple[str, ...] = ()
    """Where work may be that is to be gone on with; other calls start afresh and leave nothing unfinished."""
    overwrites: bool = True
    """Whether the command has --overwrite."""
    once: bool = False
    """Whether a call that has succeeded is not to be made again: it would add to its own result."""
    weight: float = 1.0
    """How often it is attacked, next to the others: some calls take seconds."""

    @property
    def diverges(self) -> bool:
        """Whether it replaces a run by a training that can be made to diverge."""
        return self.words[0] == "train" and OVERWRITE in self.words and self.words[3] in TRAINED

    @property
    def last(self) -> tuple[str, ...]:
        """The call that is not disturbed any more."""
        return self.finishes or self.again

    @property
    def again(self) -> tuple[str, ...]:
        """The call that follows an interrupted one."""
        return (*self.words, *self.resumes)


def writers() -> list[Writer]:
    """All of them."""
    return [*_data(), *_trainings(), *_lists(), *_pages(), *_trades(), *_studies()]


def _both(
    name: str, needs: tuple[str, ...], words: tuple[str, ...], result: str, old: str, **more: Any
) -> list[Writer]:
    """Where nothing is, and in place of something else."""
    return [
        Writer(name, needs, words, (result,), **more),
        Writer(f"{name} --overwrite", (*needs, f"{old}:{result}"), (*words, OVERWRITE), (result,), **more),
    ]


def _data() -> list[Writer]:
    log = ("data", "log", "log.csv", "--out", "out")
    splits = ("data", "splits", "--train", "train.csv", "--valid", "valid.csv", "--test", "test.csv", "--candidates",
              "candidates.csv", "--out", "out")  # fmt: skip
    demo = ("data", "demo", "--users", "60", "--items", "40", "--seed", "3", "--out", "new/out")
    one = ("data", "severity", "log.csv", "--severity", "2", "--out", "out")
    several = ("data", "severity", "log.csv", "--severity", "0", "--severity", "3", "--out", "out")
    return [
        *_both("data log", ("log.csv",), log, "out", "data"),
        *_both("data splits", ("train.csv", "valid.csv", "test.csv", "candidates.csv"), splits, "out", "data"),
        Writer("data demo", (), demo, ("new/out",)),
        *_both("data coat", ("raw-coat",), ("data", "coat", "raw-coat", "--no-check", "--out", "out"), "out", "data"),
        *_both("data severity", ("log.csv",), one, "out", "data"),
        Writer("data severity, several", ("log.csv",), several, ("out/s0", "out/s3")),
        *_shapes(),
    ]


def _shapes() -> list[Writer]:
    """Logs in other shapes than one file, and what else makes a dataset."""
    log = ("data", "log", "log.csv", "log.jsonl", "--items", "titles.csv", "--out", "out")
    drop = ("data", "log", "log.csv", "--drop-invalid", "--invalid-out", "invalid.csv", "--out", "out")
    query = ("data", "sql", "sqlite:///log.sqlite", "--query", "SELECT * FROM log", "--out", "out")
    folds = ("data", "log", "log.csv", "--split", "user-folds", "--parts", "2", "--out", "out")
    return [
        *_both("data log, several", ("log.csv", "log.jsonl", "titles.csv"), log, "out", "data"),
        Writer("data log --append", ("log.tsv", "logged"), ("data", "log", "log.tsv", "--append", "logged"),
               ("logged",), overwrites=False, once=True),
        Writer("data log --append --out", ("log.tsv", "logged"),
               ("data", "log", "log.tsv", "--append", "logged", "--out", "out"), ("out",)),
        Writer("data log --drop-invalid", ("log.csv",), drop, ("out", "invalid.csv")),
        Writer("data log, folds", ("log.csv",), folds, ("out/part-1", "out/part-2")),
        *_both("data sql", ("log.sqlite",), query, "out", "data"),
        *_both("data randomised", ("data",), ("data", "randomised", "data", "--out", "out"), "out", "other"),
        Writer("data example", (), ("data", "example", "--out", "shop"), ("shop/*",)),
    ]  # fmt: skip


def _trainings() -> list[Writer]:
    found = []
    for method in (*TRAINED, *COUNTED):
        words = tuple(train(method, "out"))
        if method in TRAINED:
            words = (*words, "--checkpoint-seconds", "0")
        more: dict[str, Any] = {"resumes": (RESUME,), "unfinished": ("out/", ".out*/", "pretrained-*/")}
        found += _both(f"train {method}", ("data",), words, "out", "twin-lightgcn", **more)
    words = (*train("lightgcn", "out"), "--warm-start", "run-lightgcn")
    found.append(Writer("train --warm-start", ("data", "run-lightgcn"), words, ("out",), **more))
    return found


def _lists() -> list[Writer]:
    run, found = ("data", "run-lightgcn"), []
    measured = ("run-lightgcn/metrics.json", "run-lightgcn/per_user.parquet")
    evaluate = ("evaluate", "run-lightgcn", "--k", "5")
    found.append(Writer("evaluate", run, evaluate, measured, overwrites=False))
    fresh = ("data", *(f"run-lightgcn/{name}:run-lightgcn/{name}" for name in RUN))
    found.append(Writer("evaluate, first", fresh, evaluate, measured, overwrites=False))
    words = ("evaluate", "run-lightgcn", "--dial-objective", "niche:5")
    found.append(
        Writer("evaluate --dial-objective", run, words, (*measured, "run-lightgcn/manifest.json"), overwrites=False)
    )
    for ending, old in (("csv", "recs.csv"), ("parquet", "recs.parquet"), ("jsonl", "recs.csv")):
        words = ("recommend", "run-lightgcn", "--k", "5", "--out", f"out.{ending}")
        found += _both(f"recommend {ending}", run, words, f"out.{ending}", old)
    found.append(Writer("export npz", run, ("export", "run-lightgcn", "--to", "npz", "--out", "out"), ("out",)))
    words = ("recommend", "run-lightgcn", "--k", "5", "--shard", "2/3", "--out", "lists")
    found.append(Writer("recommend --shard", run, words, ("lists/*",), overwrites=False))
    similar = ("similar", "run-lightgcn", "--item", "@some-items.txt", "--k", "3", "--out", "out.parquet")
    found += _both("similar", (*run, "some-items.txt"), similar, "out.parquet", "recs.parquet")
    found.append(
        Writer("export pgvector", run, ("export", "run-lightgcn", "--to", "pgvector", "--out", "out"), ("out",))
    )
    again = ("rerank", "recs.csv", "--dataset", "data", "--method", "xquad", "--k", "3", "--out", "out.csv")
    found += _both("rerank", ("data", "recs.csv"), again, "out.csv", "recs.csv")
    words = ("compare", "run-lightgcn", "run-dpaa", "--resamples", "100", "--k", "5", "--out", "out.json")
    found += _both("compare", (*run, "run-dpaa"), words, "out.json", "comparison.json")
    return found


RUN = ("config.json", "manifest.json", "history.jsonl", "model.safetensors", "users.parquet", "items.parquet",
       "edges.parquet")  # fmt: skip


def _pages() -> list[Writer]:
    words = ("report", "comparison.json", "--out", "out.html")
    audit = ("audit", "data", "--recs", "recs.csv")
    drawn = ("--html", "out.html", "--figure", "out.svg", "--per-user", "out.csv")
    files = ("out.html", "out.svg", "out.csv")
    return [
        Writer("report", ("comparison.json",), words, ("out.html",), weight=0.4),
        Writer("report over another", ("comparison.json", "audit.json:out.html"), (*words, OVERWRITE), ("out.html",),
               weight=0.4),
        Writer("report --figures", ("audit.json",),
               ("report", "audit.json", "--out", "out.html", "--figures", "drawn"), ("out.html", "drawn/*"),
               weight=0.3),
        Writer("audit", ("data", "recs.csv"), (*audit, *drawn), files, weight=0.4),
        Writer("audit --overwrite", ("data", "recs.csv", *(f"recs.csv:{file}" for file in files)),
               (*audit, *drawn, OVERWRITE), files, weight=0.4),
        Writer("audit --per-user", ("data", "recs.csv"), (*audit, "--per-user", "out.parquet"), ("out.parquet",)),
        Writer("audit --metrics-out", ("log.csv", "log.tsv"),
               ("audit", "log.csv", "--against", "log.tsv", "--metrics-out", "out.prom"), ("out.prom",),
               overwrites=False),
        Writer("report --live", ("data", "run-lightgcn"),
               ("report", "run-lightgcn", "--live", "out.html", "--customers", "5"), ("out.html",), weight=0.3),
        Writer("trace --figures", ("data", "run-dpaa"),
               ("trace", "run-dpaa", "--figures", "drawn", "--figure-format", "svg"), ("drawn/*",), overwrites=False,
               weight=0.3),
    ]  # fmt: skip


def _trades() -> list[Writer]:
    files = ("frontier.json", "frontier.csv", "frontier.html")
    results = tuple(f"trade/{name}" for name in ("run", "models/ease", "models/lightgcn", *files))
    how: dict[str, Any] = {"unfinished": ("trade/models/",), "weight": 0.4}
    words = tuple(debias("trade"))
    taken = ("debias", "data", "--runs", "run-lightgcn", "--rerank", "dial", "--keep-accuracy", "0.9", "--out", "trade")
    return [
        Writer("debias", ("data",), words, results, **how),
        Writer("debias on", ("data", "trade"), (*words, "--target", "aplt>=0.3"), results, **how),
        Writer("debias --overwrite", ("data", "trade"), (*words, OVERWRITE), results,
               **how | {"unfinished": ("trade/models/", "trade/models/.*")}),
        Writer("debias --runs", ("data", "run-lightgcn"), taken, ("trade/run", *(f"trade/{name}" for name in files)),
               weight=0.4),
    ]  # fmt: skip


def _studies() -> list[Writer]:
    pages, study = ("pages/*",), ("study/study.json", "study/best.toml")
    tuning: dict[str, Any] = {"unfinished": ("study/",), "overwrites": False}
    making: dict[str, Any] = {"unfinished": ("results/", "kept/"), "overwrites": False}
    few = {"trials": 2, "seeds": 0}  # each worker imports everything anew
    before = ("coat", "reproduced/results:results", "reproduced/pages:pages")
    return [
        Writer("tune", ("data",), tuple(tune("study")), study, **tuning),
        Writer("tune on", ("data", "study"), tuple(tune("study")), study, weight=0.5, **tuning),
        Writer("tune --jobs 2", ("data",), tuple(tune("study", jobs=2, **few)), study, weight=0.5, **tuning,
               finishes=tuple(tune("study", **few))),
        Writer("benchmark", ("data",), tuple(benchmark("benched")),
               ("benched/comparison.json", "benched/table.md", "benched/benchmark.json"), unfinished=("benched/",),
               overwrites=False, weight=0.4),
        Writer("reproduce", ("coat",), tuple(reproduce()), pages, **making),
        Writer("reproduce on", before, tuple(reproduce("--method", "ips")), pages, weight=0.5, **making),
        Writer("reproduce --jobs 2", ("coat",), tuple(reproduce("--jobs", "2")), pages, weight=0.4, **making,
               finishes=tuple(reproduce())),
    ]  # fmt: skip
