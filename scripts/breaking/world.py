"""Small things to attack: logs, datasets, runs, a study, results … each made once, when first needed.

About 60 users and 40 items, trainings of three epochs.  Everything that the tool writes itself is made by calling it.
"""

from __future__ import annotations

import gzip
import random
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import save_file

from dpaa.methods.base import Randomised
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.registry import METHODS, find_method

from .arena import Arena, remove
from .server import Kill

USABLE = [name for name in METHODS if not issubclass(find_method(name), Randomised)]
"""Methods that train on any dataset."""
TRAINED = tuple(name for name in USABLE if issubclass(find_method(name), GraphMethod))
COUNTED = tuple(name for name in USABLE if name not in TRAINED)
"""Methods without epochs."""
SMALL = {"epochs": 3, "embedding_size": 8, "layers": 2, "threads": 1}
LONG = SMALL | {"epochs": 40, "patience": 40}
"""Long enough to be stopped half-way."""
GRID = ("--space", "paper", "--try", "learning_rate=0.001,0.01,0.1", "--try", "l2=0.0001")
"""Every point is tried, so the best is the same however often a study was killed."""
COAT = ("--coat", "coat", "--method", "lightgcn", "--method", "most-popular")
PLACES = ("--results", "results", "--work", "kept", "--out", "pages")
YAHOO = "ydata-ymusic-rating-study-v1_0-{}.txt"


def settings(values: dict[str, object]) -> list[str]:
    """`--set` for each."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def train(method: str, out: str, data: str = "data", **more: object) -> list[str]:
    """A short training."""
    values = (SMALL if method in TRAINED else {}) | more
    return ["train", data, "--method", method, *settings(values), "--out", out]


def tune(out: str, trials: int = 3, jobs: int = 1, seeds: int = 1, seed: int = 0, data: str = "data") -> list[str]:
    """A short study of a whole grid."""
    words = ["tune", data, "--method", "lightgcn", "--out", out, *GRID, *settings(SMALL | {"epochs": 2})]
    return [*words, "--trials", str(trials), "--jobs", str(jobs), "--seeds", str(seeds), "--seed", str(seed)]


def debias(out: str, data: str = "data") -> list[str]:
    """A frontier of two small models."""
    words = ["debias", data, "--methods", "ease,lightgcn", "--rerank", "dial", "--k", "5", *settings(SMALL)]
    return [*words, "--out", out]


def reproduce(*more: str) -> list[str]:
    """The smallest table that trains."""
    budget = () if "--budget" in more else ("--budget", "smoke")
    return ["reproduce", "overall", *COAT, *budget, *PLACES, *more]


def benchmark(out: str) -> list[str]:
    """The smallest that tunes one method and takes another as it is."""
    words = ["benchmark", "data", "--methods", "lightgcn,most-popular", "--trials", "2", "--seeds", "1", "--k", "5"]
    return [*words, *settings(SMALL | {"epochs": 2}), "--out", out]


class World:
    """What there is to attack, by name: a file or folder."""

    def __init__(self, folder: Path, arena: Arena) -> None:
        self.folder, self.arena = folder, arena
        folder.mkdir(parents=True, exist_ok=True)

    def place(self, names: Iterable[str]) -> None:
        """A clean arena with these in its working folder; `run-dpaa/config.json:out/x` puts a part under a name."""
        wanted = dict(_named(name) for name in names)
        self.make(source.partition("/")[0] for source in wanted.values())
        self.arena.clear()
        for target, source in wanted.items():
            self.arena.put(self.folder / source, target)

    def make(self, names: Iterable[str]) -> None:
        """See to it that they are there."""
        for name in names:
            if not (self.folder / name).exists():
                recipe, needs = _recipe(name)
                self.place(needs)
                recipe(self.arena, name)
                self._keep(name)

    def _keep(self, name: str) -> None:
        """Under its name only when it is whole: making it may be interrupted."""
        target, beside = self.folder / name, self.folder / f".{name}.making"
        if beside.exists():
            remove(beside)
        (self.arena.work / name).rename(beside)
        beside.rename(target)


def _named(name: str) -> tuple[str, str]:
    """Where a thing goes, and what it is."""
    source, _, target = name.partition(":")
    return target or source, source


Recipe = Callable[[Arena, str], None]


def _recipe(name: str) -> tuple[Recipe, tuple[str, ...]]:
    """How to make a thing, and of what."""
    for prefix, found in RECIPES.items():
        if name == prefix or (prefix.endswith("*") and name.startswith(prefix[:-1])):
            return found
    raise KeyError(name)


def _called(*words: object) -> Recipe:
    """Made by calling the tool."""

    def make(arena: Arena, name: str) -> None:
        del name
        _ok(arena, words)

    return make


def _ok(arena: Arena, words: Iterable[object]) -> None:
    said = arena.call(words)
    if said.code != 0:
        raise RuntimeError(f"cannot make what is to be attacked: dpaa {' '.join(map(str, words))}\n{said.err}")


# ---------------------------------------------------------------------- tables


def rows(seed: int = 0) -> Iterator[tuple[str, str, int, int]]:
    """A log: user, item, rating, time; every user has about ten items, the first ones more often."""
    rng = random.Random(seed)
    for user in range(60):
        for item in sorted({int(40 * rng.random() ** 2) for _ in range(14)}):
            yield f"u{user:02}", f"i{item:02}", rng.randint(1, 5), 1_600_000_000 + rng.randrange(10**7)


def _text(separator: str, header: str, seed: int = 0) -> str:
    lines = [separator.join(map(str, row)) for row in rows(seed)]
    return "\n".join([header.replace(",", separator), *lines]) + "\n"


def _lists(pairs: Iterable[tuple[object, object]]) -> str:
    lines: dict[object, list[str]] = {}
    for user, item in pairs:
        lines.setdefault(user, [str(user)]).append(str(item))
    return "\n".join(" ".join(words) for words in lines.values()) + "\n"


def _frame(seed: int = 0) -> pl.DataFrame:
    return pl.DataFrame(list(rows(seed)), schema=["user_id", "item_id", "rating", "timestamp"], orient="row")


def _log(arena: Arena, name: str) -> None:
    if name.endswith(".gz"):
        plain = name.removesuffix(".gz")
        _log(arena, plain)
        (arena.work / name).write_bytes(gzip.compress((arena.work / plain).read_bytes(), mtime=0))
        return
    file, header = arena.work / name, "user_id,item_id,rating,timestamp"
    ending = file.suffix.removeprefix(".")
    if ending == "parquet":
        _frame().write_parquet(file)
    elif ending == "jsonl":
        _frame().write_ndjson(file)
    elif ending == "sqlite":
        with closing(sqlite3.connect(file)) as base, base:
            base.execute("CREATE TABLE log (user_id TEXT, item_id TEXT, rating INTEGER, timestamp INTEGER)")
            base.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows())
    elif ending == "txt":
        file.write_text(_lists((user, item) for user, item, _, _ in rows()))
    elif ending == "inter":
        file.write_text(_text("\t", "user_id:token,item_id:token,rating:float,timestamp:float"))
    else:
        file.write_text(_text("," if ending == "csv" else "\t", header))


def _split(arena: Arena, name: str) -> None:
    part = {"train.csv": (0, 60), "valid.csv": (60, 80), "test.csv": (80, 100)}[name]
    frame = _frame()
    start, end = (frame.height * share // 100 for share in part)
    frame.sample(fraction=1.0, shuffle=True, seed=1)[start:end].write_csv(arena.work / name)


def _candidates(arena: Arena, name: str) -> None:
    items = [f"i{item:02}" for item in range(40)]
    file = arena.work / name
    if name.endswith(".parquet"):
        pl.DataFrame({"item_id": items}).write_parquet(file)
    else:
        file.write_text("".join(f"{line}\n" for line in (["item_id"] if name.endswith(".csv") else []) + items))


def _titles(arena: Arena, name: str) -> None:
    table = pl.DataFrame(
        {
            "item_id": [f"i{item:02}" for item in range(40)],
            "title": [f"Thing {item}" for item in range(40)],
            "genre": [("drama", "crime|drama", "comedy", None)[item % 4] for item in range(40)],
            "year": [1980 + item for item in range(40)],
        }
    )
    table.write_parquet(arena.work / name) if name.endswith(".parquet") else table.write_csv(arena.work / name)


def _bought(arena: Arena, name: str) -> None:
    pairs = pl.read_parquet(arena.work / "data" / "test.parquet").select("user_id", "item_id")
    pairs.write_csv(arena.work / name)


def _newcomers(arena: Arena, name: str) -> None:
    known = pl.read_parquet(arena.work / "data" / "train.parquet")["item_id"].unique().sort().to_list()
    pairs = [(f"new{user}", known[(7 * user + step) % len(known)]) for user in range(5) for step in range(4)]
    file = arena.work / name
    if name.endswith(".txt"):
        file.write_text(_lists(pairs))
    elif name.endswith(".parquet"):
        pl.DataFrame(pairs, schema=["user_id", "item_id"], orient="row").write_parquet(file)
    else:
        file.write_text("user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in pairs))


def _ids(arena: Arena, name: str) -> None:
    column = "user_id" if name.startswith("some-users") else "item_id"
    known = pl.read_parquet(arena.work / "data" / "train.parquet")[column].unique().sort()
    (arena.work / name).write_text("".join(f"{one}\n" for one in known.head(20)))


def _toml(arena: Arena, name: str) -> None:
    lines = ['method = "lightgcn"', "learning_rate = 1e-3", 'sampler = "interaction"']
    lines += [f"{key} = {value}" for key, value in SMALL.items()]
    (arena.work / name).write_text("\n".join(lines) + "\n")


def _embeddings(arena: Arena, name: str) -> None:
    rng = np.random.default_rng(0)
    ids = {}
    for what in ("user", "item"):
        parts = [pl.read_parquet(arena.work / "data" / f"{part}.parquet") for part in ("train", "valid", "test")]
        ids[what] = pl.concat([part[f"{what}_id"] for part in parts]).unique().sort()
    if name.endswith(".safetensors"):
        tensors = {f"{what}_embedding": rng.normal(size=(len(one), 8)).astype(np.float32) for what, one in ids.items()}
        save_file(tensors, arena.work / name)
        return
    what = name.partition("-")[0]
    table = pl.DataFrame({"id": ids[what]} | {f"v{place}": rng.normal(size=len(ids[what])) for place in range(8)})
    table.write_parquet(arena.work / name) if name.endswith(".parquet") else table.write_csv(arena.work / name)


# ---------------------------------------------------------------------- the paper's datasets, far too small


def _coat_lists(arena: Arena, name: str) -> None:
    (arena.work / name).mkdir()
    numbered = [(int(user[1:]), int(item[1:])) for user, item, _, _ in rows()]
    for file, part in (("train.txt", numbered[0::2]), ("val.txt", numbered[1::4]), ("test.txt", numbered[3::4])):
        (arena.work / name / file).write_text(_lists(part))


def _coat_matrices(arena: Arena, name: str) -> None:
    (arena.work / name).mkdir()
    rng = random.Random(0)
    for file in ("train.ascii", "test.ascii"):
        lines = (" ".join(str(rng.choice((0, 0, 0, 3, 4, 5))) for _ in range(12)) for _ in range(20))
        (arena.work / name / file).write_text("\n".join(lines) + "\n")


def _yahoo_ratings(arena: Arena, name: str) -> None:
    (arena.work / name).mkdir()
    for seed, part in enumerate(("train", "test")):
        lines = (f"{int(user[1:]) + 1}\t{int(item[1:]) + 1}\t{rating}\n" for user, item, rating, _ in rows(seed))
        (arena.work / name / YAHOO.format(part)).write_text("".join(lines))


def _kuairec_matrices(arena: Arena, name: str) -> None:
    (arena.work / name).mkdir()
    for seed, part in enumerate(("big", "small")):
        lines = (f"{int(user[1:])},{int(item[1:])},{time},{rating}.5\n" for user, item, rating, time in rows(seed))
        text = "user_id,video_id,timestamp,watch_ratio\n" + "".join(lines)
        (arena.work / name / f"{part}_matrix.csv").write_text(text)


# ---------------------------------------------------------------------- what the tool writes


def _run(arena: Arena, name: str) -> None:
    """`run-METHOD`, evaluated."""
    _ok(arena, train(name.removeprefix("run-"), name))
    _ok(arena, ["evaluate", name])


def _titled(arena: Arena, name: str) -> None:
    """Of data whose items have titles and columns."""
    _ok(arena, train("lightgcn", name, "logged"))


def _other_run(arena: Arena, name: str) -> None:
    """Of another seed (`twin`) or dataset (`stranger`), evaluated."""
    stranger = name.startswith("stranger")
    method = name.partition("-")[2]
    _ok(arena, train(method, name, "other" if stranger else "data", seed=0 if stranger else 1))
    _ok(arena, ["evaluate", name])


def _unfinished(arena: Arena, name: str) -> None:
    """A run that was stopped half-way, with its checkpoint."""
    words = interrupted(name, seed=1 if name.endswith("twin") else 0)
    for after in (0.3, 0.2, 0.15, 0.1, 0.4, 0.6, 0.9):
        arena.call(words, kill=Kill(after, signal.SIGTERM))
        if any((arena.work / name).glob("checkpoint/*.safetensors")):
            return
        if (arena.work / name).exists():
            remove(arena.work / name)
    raise RuntimeError("no training could be stopped half-way")


def interrupted(out: str, seed: int = 0) -> list[str]:
    """A training that is long enough to be stopped."""
    return [*train("lightgcn", out, **(LONG | {"seed": seed})), "--checkpoint-seconds", "0"]


def _recommendations(arena: Arena, name: str) -> None:
    run = "run-dpaa" if name.startswith("more") else "run-lightgcn"
    _ok(arena, ["recommend", run, "--k", "10", "--out", name])


def _audit_json(arena: Arena, name: str) -> None:
    said = arena.call(["audit", "data", "--recs", "recs.csv", "--json"])
    (arena.work / name).write_text(said.out)


def _reproduced(arena: Arena, name: str) -> None:
    """`results` and `kept` of a table; `twin-…`: of one with other hyperparameters."""
    _ok(arena, reproduce(*(["--budget", "quick"] if "twin" in name else [])))
    (arena.work / name).mkdir()
    for part in ("results", "kept", "pages"):
        (arena.work / part).rename(arena.work / name / part)


RECIPES: dict[str, tuple[Recipe, tuple[str, ...]]] = {
    "log.*": (_log, ()),
    "train.csv": (_split, ()),
    "valid.csv": (_split, ()),
    "test.csv": (_split, ()),
    "candidates.*": (_candidates, ()),
    "coat": (_coat_lists, ()),
    "raw-coat": (_coat_matrices, ()),
    "raw-yahoo": (_yahoo_ratings, ()),
    "raw-kuairec": (_kuairec_matrices, ()),
    "data": (_called("data", "demo", "--users", 60, "--items", 40, "--out", "data"), ()),
    "other": (_called("data", "demo", "--users", 60, "--items", 40, "--seed", 1, "--out", "other"), ()),
    "listed": (
        _called("data", "splits", "--train", "train.csv", "--valid", "valid.csv", "--test", "test.csv", "--candidates",
                "candidates.csv", "--keep-duplicates", "--out", "listed"),
        ("train.csv", "valid.csv", "test.csv", "candidates.csv"),
    ),
    "titles.*": (_titles, ()),
    "bought.csv": (_bought, ("data",)),
    "logged": (
        _called("data", "log", "log.csv", "--items", "titles.csv", "--out", "logged"), ("log.csv", "titles.csv"),
    ),
    "run-titled": (_titled, ("logged",)),
    "benched": (_called(*benchmark("benched")), ("data",)),
    "run-*": (_run, ("data",)),
    "twin-reproduced": (_reproduced, ("coat",)),
    "twin-*": (_other_run, ("data",)),
    "stranger-*": (_other_run, ("other",)),
    "unfinished*": (_unfinished, ("data",)),
    "recs.*": (_recommendations, ("data", "run-lightgcn")),
    "more-recs.*": (_recommendations, ("data", "run-dpaa")),
    "newcomers.*": (_newcomers, ("data",)),
    "some-users.txt": (_ids, ("data",)),
    "some-items.txt": (_ids, ("data",)),
    "settings.toml": (_toml, ()),
    "embeddings.safetensors": (_embeddings, ("data",)),
    "user-vectors.*": (_embeddings, ("data",)),
    "item-vectors.*": (_embeddings, ("data",)),
    "comparison.json": (
        _called("compare", "run-lightgcn", "run-dpaa", "--resamples", 100, "--out", "comparison.json"),
        ("data", "run-lightgcn", "run-dpaa"),
    ),
    "audit.json": (_audit_json, ("data", "recs.csv")),
    "trade": (_called(*debias("trade")), ("data",)),
    "study": (_called(*tune("study", trials=2)), ("data",)),
    "study-twin": (_called(*tune("study-twin", trials=2, seed=1)), ("data",)),
    "reproduced": (_reproduced, ("coat",)),
}  # fmt: skip
