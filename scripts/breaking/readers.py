"""Every file that the tool reads, with a call that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from .world import SMALL, YAHOO, benchmark, debias, interrupted, reproduce, settings, train, tune

BOUND = ("config.json", "model.safetensors", "users.parquet", "items.parquet", "edges.parquet")
"""Files of a run whose digests are in its manifest: not a byte of them may change unnoticed."""
MEASURED = ("metrics.json", "per_user.parquet")
ENDINGS = {"csv": "csv", "tsv": "tsv", "inter": "inter", "parquet": "parquet", "txt": "list", "jsonl": "jsonl"}


@dataclass(frozen=True)
class Reader:
    """A call, and the file of it that is attacked."""

    name: str
    needs: tuple[str, ...]
    """What must be there, by its name in the world."""
    file: str
    """What is spoilt: a path in the working folder, or a pattern of which the first match is taken."""
    kind: str
    """Its format."""
    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    """Where it may write if it succeeds."""
    keeps: tuple[str, ...] = ()
    """What may be there or be other although it was refused: finished trainings, say."""
    gz: bool = False
    bound: bool = False
    """Whether any change must be refused."""
    others: tuple[str, ...] = ()
    """Files of other runs or datasets, valid in themselves, that must be refused in its place."""
    drops: bool = False
    """Whether faulty rows may be left out."""
    share: float = 1.0
    """How often it is attacked, next to the others: some calls take seconds."""


def readers() -> list[Reader]:
    """All of them."""
    return [*_logs(), *_shapes(), *_lists(), *_datasets(), *_runs(), *_trainings(), *_studies(), *_reports()]


def _logs() -> list[Reader]:
    found = []
    for ending, kind in ENDINGS.items():
        for suffix in ("", ".gz"):
            file = f"log.{ending}{suffix}"
            words = ("data", "log", file, "--positive", "rating>=2", "--split", "temporal", "--out", "out")
            if kind == "list":
                words = ("data", "log", file, "--out", "out")
            found.append(Reader(f"data log {file}", (file,), file, kind, words, ("out/",), gz=bool(suffix)))
    for file in ("log.csv", "log.parquet", "log.txt.gz"):
        kind = ENDINGS[file.split(".")[1]]
        found.append(Reader(f"audit {file}", (file,), file, kind, ("audit", file, "--json"), gz=file.endswith("gz")))
    severity = ("data", "severity", "log.csv", "--severity", "2", "--out", "out")
    found.append(Reader("data severity log.csv", ("log.csv",), "log.csv", "csv", severity, ("out/",)))
    parts = ("train.csv", "valid.csv", "test.csv")
    splits = ("data", "splits", "--train", "train.csv", "--valid", "valid.csv", "--test", "test.csv", "--out", "out")
    found += [Reader(f"data splits {file}", parts, file, "csv", splits, ("out/",), share=0.5) for file in parts]
    for file, kind in (("candidates.csv", "csv"), ("candidates.txt", "list"), ("candidates.parquet", "parquet")):
        words = (*splits, "--candidates", file)
        found.append(Reader(f"data splits {file}", (*parts, file), file, kind, words, ("out/",)))
    for source, folder, file, kind in (
        ("coat", "raw-coat", "train.ascii", "matrix"),
        ("yahoo-r3", "raw-yahoo", YAHOO.format("test"), "matrix"),
        ("kuairec", "raw-kuairec", "small_matrix.csv", "csv"),
    ):
        words = ("data", source, folder, "--no-check", "--out", "out")
        found.append(Reader(f"data {source}", (folder,), f"{folder}/{file}", kind, words, ("out/",), share=0.6))
    return found


def _shapes() -> list[Reader]:
    """Logs in other shapes than one file, and what comes with them."""
    log = ("data", "log", "log.csv", "--positive", "rating>=2")
    found = [
        Reader(f"data log --drop-invalid {file}", (file,), file, kind,
               ("data", "log", file, "--drop-invalid", "--invalid-out", "invalid.csv", "--out", "out"),
               ("out/", "invalid.csv"), drops=True)
        for file, kind in (("log.csv", "csv"), ("log.jsonl", "jsonl"), ("log.parquet", "parquet"))
    ]  # fmt: skip
    found.append(Reader("data log, several", ("log.csv", "log.tsv"), "log.tsv", "tsv",
                        (*log, "log.tsv", "--out", "out"), ("out/",)))  # fmt: skip
    found.append(Reader("data log of a folder", ("log.csv:logs/one.csv", "log.jsonl:logs/two.jsonl"), "logs/two.jsonl",
                        "jsonl", ("data", "log", "logs", "--out", "out"), ("out/",)))  # fmt: skip
    for file in ("titles.csv", "titles.parquet"):
        kind = file.partition(".")[2]
        words = (*log, "--items", file, "--out", "out")
        found.append(Reader(f"data log --items {file}", ("log.csv", file), file, kind, words, ("out/",)))
    for file, kind in (("log.tsv", "tsv"), ("logged/dataset.json", "json"), ("logged/train.parquet", "parquet"),
                       ("logged/attributes.parquet", "parquet")):  # fmt: skip
        words = ("data", "log", "log.tsv", "--append", "logged", "--out", "out")
        found.append(Reader(f"data log --append {file}", ("log.tsv", "logged"), file, kind, words, ("out/",)))
    words = ("data", "sql", "sqlite:///log.sqlite", "--query", "SELECT * FROM log", "--out", "out")
    found.append(Reader("data sql", ("log.sqlite",), "log.sqlite", "sqlite", words, ("out/",)))
    words = ("audit", "log.csv", "--against", "log.tsv", "--metrics-out", "out.prom")
    found.append(Reader("audit --against", ("log.csv", "log.tsv"), "log.tsv", "tsv", words, ("out.prom",)))
    for file in ("dataset.json", "valid.parquet"):
        words = ("data", "randomised", "data", "--out", "out")
        kind = file.rpartition(".")[2]
        found.append(Reader(f"data randomised {file}", ("data",), f"data/{file}", kind, words, ("out/",), share=0.5))
    return found


def _lists() -> list[Reader]:
    found = []
    for ending in ("csv", "parquet"):
        file = f"recs.{ending}"
        audit = ("audit", "data", "--recs", file, "--per-user", "out.csv")
        found.append(Reader(f"audit --recs {file}", ("data", file), file, ending, audit, ("out.csv",)))
        words = ("evaluate", "--recs", file, "--dataset", "data", "--json")
        found.append(Reader(f"evaluate --recs {file}", ("data", file), file, ending, words))
        words = ("rerank", file, "--dataset", "data", "--method", "xquad", "--k", "3", "--out", "out.csv")
        found.append(Reader(f"rerank {file}", ("data", file), file, ending, words, ("out.csv",), share=0.5))
        words = ("compare", "more-recs.csv", file, "--dataset", "data", "--resamples", "100", "--out", "out.json")
        needs = ("data", "more-recs.csv", file)
        found.append(Reader(f"compare {file}", needs, file, ending, words, ("out.json",)))
    return found


def _datasets() -> list[Reader]:
    found = []
    calls = {
        "data describe": (("data", "describe", "data"), ()),
        "train": (tuple(train("most-popular", "out")), ("out/",)),
        "audit": (("audit", "data", "--json"), ()),
    }
    for file in ("dataset.json", "train.parquet", "valid.parquet", "test.parquet"):
        kind = file.rpartition(".")[2]
        for call, (words, writes) in calls.items():
            others = () if file == "dataset.json" else (f"other/{file}",)
            share = 1.0 if file in ("dataset.json", "train.parquet") else 0.5
            name = f"{call} data/{file}"
            found.append(Reader(name, ("data",), f"data/{file}", kind, words, writes, others=others, share=share))
    file = "listed/candidates.parquet"
    found.append(Reader("data describe candidates", ("listed",), file, "parquet", ("data", "describe", "listed")))
    words = ("tune", "data", "--method", "lightgcn", "--trials", "1", "--seeds", "0", *settings(SMALL))
    found.append(
        Reader("tune data/dataset.json", ("data",), "data/dataset.json", "json", words, ("studies/",), share=0.6)
    )
    words = ("evaluate", "run-lightgcn")
    writes = ("run-lightgcn/metrics.json", "run-lightgcn/per_user.parquet")
    for file in ("dataset.json", "test.parquet"):
        kind, other = file.rpartition(".")[2], (f"other/{file}",)
        needs = ("data", "run-lightgcn")
        found.append(Reader(f"evaluate data/{file}", needs, f"data/{file}", kind, words, writes, others=other))
    return found


def _runs() -> list[Reader]:
    found = []
    measured = ("run-dpaa/metrics.json", "run-dpaa/per_user.parquet", "run-dpaa/manifest.json")
    calls = {
        "recommend": (("recommend", "run-dpaa", "--k", "3", "--out", "out.csv"), ("out.csv",)),
        "evaluate": (("evaluate", "run-dpaa"), measured),
        "trace": (("trace", "run-dpaa", "--json"), ()),
        "compare": (("compare", "run-lightgcn", "run-dpaa", "--resamples", "100"), ()),
        "report": (("report", "run-dpaa", "--out", "out.html"), ("out.html",)),
    }
    read = {
        "recommend": (*BOUND, "manifest.json"),
        "evaluate": ("config.json", "manifest.json", "model.safetensors", "edges.parquet", *MEASURED),
        "trace": ("manifest.json", "history.jsonl", "edges.parquet"),
        "compare": ("manifest.json", "model.safetensors"),
        "report": ("manifest.json", "history.jsonl", "metrics.json"),
    }
    for call, files in read.items():
        words, writes = calls[call]
        needs = ("data", "run-dpaa", *(("run-lightgcn",) if call == "compare" else ()))
        for file in files:
            kind = file.rpartition(".")[2]
            others = (f"twin-dpaa/{file}", f"stranger-dpaa/{file}")
            if file in MEASURED and call == "evaluate":
                others = ()  # not read there but written
            share = 0.25 if call == "report" else 0.4 if file in MEASURED else 1.0
            found.append(
                Reader(f"{call} run/{file}", needs, f"run-dpaa/{file}", kind, words, writes, bound=file in BOUND,
                       others=others, share=share)
            )  # fmt: skip
    for file, kind in (("newcomers.csv", "csv"), ("newcomers.parquet", "parquet"), ("newcomers.txt", "list")):
        words = ("recommend", "run-lightgcn", "--history", file, "--out", "out.csv")
        needs = ("data", "run-lightgcn", file)
        found.append(Reader(f"recommend --history {file}", needs, file, kind, words, ("out.csv",)))
    for option, file in (("--users", "some-users.txt"), ("--items", "some-items.txt"), ("--exclude", "some-items.txt")):
        words = ("recommend", "run-lightgcn", option, f"@{file}", "--k", "3", "--out", "out.csv")
        needs = ("data", "run-lightgcn", file)
        found.append(Reader(f"recommend {option} @{file}", needs, file, "lines", words, ("out.csv",), share=0.7))
    words = ("recommend", "run-lightgcn", "--exclude-pairs", "bought.csv", "--k", "3", "--out", "out.csv")
    needs = ("data", "run-lightgcn", "bought.csv")
    found.append(Reader("recommend --exclude-pairs", needs, "bought.csv", "csv", words, ("out.csv",)))
    words = ("similar", "run-lightgcn", "--item", "@some-items.txt", "--k", "3", "--out", "out.csv")
    needs = ("data", "run-lightgcn", "some-items.txt")
    found.append(Reader("similar --item @some-items.txt", needs, "some-items.txt", "lines", words, ("out.csv",)))
    titled = ("logged", "run-titled")
    for file in ("attributes.parquet", "items.parquet", "manifest.json"):
        kind = file.rpartition(".")[2]
        for call, words in (
            (
                "recommend --at-most",
                ("recommend", "run-titled", "--at-most", "genre=2", "--k", "3", "--out", "out.csv"),
            ),
            ("export", ("export", "run-titled", "--to", "npz", "--out", "out")),
        ):
            bound = file in (*BOUND, "attributes.parquet")
            writes = ("out.csv",) if call.startswith("recommend") else ("out/",)
            found.append(Reader(f"{call} run/{file}", titled, f"run-titled/{file}", kind, words, writes, bound=bound,
                                share=0.5))  # fmt: skip
    words = ("evaluate", "run-titled", "--group-by", "genre")
    writes = ("run-titled/metrics.json", "run-titled/per_user.parquet", "run-titled/manifest.json")
    file = "logged/attributes.parquet"
    found.append(Reader("evaluate --group-by", titled, file, "parquet", words, writes, share=0.5))
    return found


def _trainings() -> list[Reader]:
    words = (*interrupted("unfinished"), "--resume")
    found = [
        Reader(f"train --resume {file}", ("data", "unfinished"), f"unfinished/{file}", kind, words, ("unfinished/",),
               others=(f"unfinished-twin/{file}",) if file.startswith("checkpoint") else ())
        for file, kind in (("checkpoint/*.safetensors", "safetensors"), ("config.json", "json"),
                           ("history.jsonl", "jsonl"))
    ]  # fmt: skip
    words = ("train", "data", "--config", "settings.toml", "--out", "out")
    found.append(Reader("train --config", ("data", "settings.toml"), "settings.toml", "toml", words, ("out/",)))
    words = ("tune", "data", "--method", "lightgcn", "--config", "settings.toml", "--trials", "1", "--seeds", "0",
             "--out", "out")  # fmt: skip
    needs = ("data", "settings.toml")
    found.append(Reader("tune --config", needs, "settings.toml", "toml", words, ("out/",), share=0.5))
    for file, kind in (("embeddings.safetensors", "safetensors"),
                       ("user-vectors.csv", "csv"), ("item-vectors.parquet", "parquet")):  # fmt: skip
        pair = {"csv": f"{file},item-vectors.csv", "parquet": f"user-vectors.csv,{file}"}.get(kind, file)
        words = (*train("dpaa", "out"), "--pretrained", pair)
        needs = ("data", *pair.split(","))
        found.append(Reader(f"train --pretrained {file}", needs, file, kind, words, ("out/",)))
    words = (*train("lightgcn", "out", "logged"), "--warm-start", "run-lightgcn")
    for file in ("manifest.json", "model.safetensors", "items.parquet"):
        kind = file.rpartition(".")[2]
        found.append(
            Reader(f"train --warm-start run/{file}", ("data", "logged", "run-lightgcn"), f"run-lightgcn/{file}", kind,
                   words, ("out/",), bound=file in BOUND, others=(f"twin-lightgcn/{file}",), share=0.5)
        )  # fmt: skip
    words = (*train("dpaa", "out"), "--pretrained", "run-lightgcn")
    for file in ("manifest.json", "model.safetensors", "config.json"):
        kind = file.rpartition(".")[2]
        found.append(
            Reader(f"train --pretrained run/{file}", ("data", "run-lightgcn"), f"run-lightgcn/{file}", kind, words,
                   ("out/",), bound=file in BOUND, others=(f"twin-lightgcn/{file}", f"stranger-lightgcn/{file}"),
                   share=0.5)
        )  # fmt: skip
    return found


def _studies() -> list[Reader]:
    found = []
    files = {
        "study.json": "json",
        "study.sqlite": "sqlite",
        "trials.jsonl": "jsonl",
        "best.toml": "toml",
        "runs/*/manifest.json": "json",
        "runs/*/model.safetensors": "safetensors",
    }
    for file, kind in files.items():
        others = (f"study-twin/{file}",) if file in ("study.json", "study.sqlite") else ()
        keeps = () if file in ("study.json", "study.sqlite") else ("study/",)
        found.append(
            Reader(f"tune again {file}", ("data", "study"), f"study/{file}", kind, tuple(tune("study", trials=3)),
                   ("study/",), keeps, others=others, share=0.6)
        )  # fmt: skip
    for file, kind in (("benchmark.json", "json"), ("lightgcn/study.json", "json"),
                       ("lightgcn/study.sqlite", "sqlite")):  # fmt: skip
        found.append(
            Reader(f"benchmark again {file}", ("data", "benched"), f"benched/{file}", kind, tuple(benchmark("benched")),
                   ("benched/",), ("benched/",), share=0.3)
        )  # fmt: skip
    for file, kind in (("frontier.json", "json"), ("models/lightgcn/manifest.json", "json"),
                       ("models/lightgcn/model.safetensors", "safetensors")):  # fmt: skip
        words = (*debias("trade"), "--target", "aplt>=0.3")
        found.append(Reader(f"debias on {file}", ("data", "trade"), f"trade/{file}", kind, words, ("trade/",),
                            ("trade/models/",), share=0.4))  # fmt: skip
    kept = ("results/", "kept/", "pages/")
    parts = ("coat", "reproduced/results:results", "reproduced/kept:kept")
    for file, kind in (("results/overall/lightgcn-*.json", "json"), ("kept/coat/dataset.json", "json"),
                       ("kept/coat/train.parquet", "parquet"), ("coat/val.txt", "list")):  # fmt: skip
        others = ("twin-reproduced/results/overall/lightgcn-*.json",) if file.startswith("results") else ()
        words = tuple(reproduce())
        found.append(Reader(f"reproduce {file}", parts, file, kind, words, kept, kept[:2], others=others, share=0.6))
    return found


def _reports() -> list[Reader]:
    return [
        Reader(f"report {file}", (file,), file, "json", ("report", file, "--out", "out.html"), ("out.html",), share=0.7)
        for file in ("comparison.json", "audit.json")
    ]
