"""How good and how long the default training is, beside the old one, `implicit` ALS and the usual LightGCN code.

    python scripts/time_to_quality.py --coat DIR --kuairec DIR

DIR are the folders of Coat's official files and of KuaiRec's `valid.txt` and `test.txt`.  Every training is a line of
`--work`/trainings.jsonl, written when it ends: the same call goes on where it was stopped.  Seeds are those of the
training; the data are those of seed 0.  Everything is chosen on validation, by early stopping; test is measured once.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from benchmarks.yardsticks import UsualCode  # noqa: E402
from torch import Tensor  # noqa: E402

from dpaa.data.dataset import Dataset  # noqa: E402
from dpaa.data.pairs import Pairs  # noqa: E402
from dpaa.data.sources.coat import coat  # noqa: E402
from dpaa.data.sources.severity import read_pairs, with_severity  # noqa: E402
from dpaa.data.sources.world import simulate  # noqa: E402
from dpaa.evaluation.evaluator import Evaluator  # noqa: E402
from dpaa.methods.base import Method  # noqa: E402
from dpaa.methods.lightgcn import LightGCN  # noqa: E402
from dpaa.methods.settings import PAPER_TRAINING  # noqa: E402
from dpaa.runs.fit import fit_method, make_method  # noqa: E402
from dpaa.training.stopping import EarlyStopping  # noqa: E402

DATA = ("coat", "s=0", "s=5", "s=9", "demo")
TITLES = {"coat": "Coat", "s=0": "KuaiRec s = 0", "s=5": "KuaiRec s = 5", "s=9": "KuaiRec s = 9", "demo": "demo world"}
OLD = {"old default (lr 1e-3)": 1e-3, "old style, lr 5e-3": 5e-3, "old style, lr 1e-2": 1e-2}
NEW, USUAL, ALS = "new default", "usual code, lr 1e-3", "`implicit` ALS"
RIVALS_ON = ("coat", "s=5")
"""Where the usual code and ALS are trained too; on the others the usual code takes hours."""
SEEDS = 5
COLUMNS = ("epochs", "cpu_seconds", "wall_seconds", "valid_recall@20", "recall@20", "ndcg@20")
PAGE, FIGURES = "time-to-quality.md", "time-to-quality.csv"


def main() -> None:
    """Train what is missing, then write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--coat", type=Path, help="folder of train.ascii and test.ascii")
    asked.add_argument("--kuairec", type=Path, help="folder of valid.txt and test.txt, the small matrix's positives")
    asked.add_argument("--work", type=Path, default=Path("time-to-quality"), help="where trainings are kept")
    asked.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="where the page is written")
    asked.add_argument("--seeds", type=int, default=SEEDS)
    asked.add_argument("--minutes", type=float, default=math.inf, help="no training is begun after so many minutes")
    asked.add_argument("--note", default="", help="what readers of this page must know of how it came about")
    given = asked.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    store, began = given.work / "trainings.jsonl", time.monotonic()
    ours(simulate(200, 100), "lightgcn", {"epochs": 2, "threads": 1})  # what libraries do once is nobody's time
    lines = _read(store)
    done = {(line["data"], line["training"], line["seed"]) for line in lines}
    for name, training, seed in wanted(given.seeds):
        if (name, training, seed) in done or time.monotonic() - began > 60 * given.minutes:
            continue
        data = dataset(name, given.coat, given.kuairec)
        if data is None:
            continue
        line = {"data": name, "training": training, "seed": seed, **trained(data, training, seed)}
        with store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        lines.append(line)
        print(json.dumps(line), flush=True)
    write_page(lines, given.out, given.note)


def wanted(seeds: int) -> Iterator[tuple[str, str, int]]:
    """The demo world last: it takes the longest."""
    for name in DATA:
        for seed in range(seeds):
            rivals = (USUAL, ALS) if name in RIVALS_ON else (ALS,)
            yield from ((name, training, seed) for training in (NEW, *OLD, *rivals))


@cache
def dataset(name: str, coat_folder: Path | None, kuairec: Path | None) -> Dataset | None:
    """By its name; None where its files are not given."""
    if name == "demo":
        return simulate()
    if name == "coat":
        return coat(coat_folder) if coat_folder else None
    if kuairec is None:
        return None
    pairs, _ = read_pairs([str(kuairec / "valid.txt"), str(kuairec / "test.txt")])
    return with_severity(pairs, float(name.removeprefix("s=")))


def trained(data: Dataset, training: str, seed: int) -> dict[str, Any]:
    """One training, timed from the data in memory to the vectors, and what it gives on test."""
    untested = replace(data, test=Pairs.of([], []))  # whatever trains cannot look at the test split
    wall, cpu = time.perf_counter(), time.process_time()
    if training == USUAL:
        method, told = usual_code(untested, seed)
    elif training == ALS:
        method, told = ours(untested, "als", {"seed": seed})
    else:
        protocol = {} if training == NEW else PAPER_TRAINING | {"learning_rate": OLD[training]}
        method, told = ours(untested, "lightgcn", protocol | {"seed": seed, "threads": 1})
    told |= {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}
    told["valid_recall@20"] = Evaluator(data, 20, "valid", "drop").recall_of(method)
    return told | Evaluator(data, 20, "test", "drop").recall(method)


def ours(data: Dataset, name: str, settings: dict[str, Any]) -> tuple[Method, dict[str, Any]]:
    """A method of this package, without the popularity dial's curve."""
    model = fit_method(make_method(data, name, settings), data, dial=False)
    return model.method, {"epochs": (model.manifest.get("training") or {}).get("epochs")}


def usual_code(data: Dataset, seed: int) -> tuple[Method, dict[str, Any]]:
    """COO products, autograd, unfused Adam; our start, triples and evaluator, the old default's protocol."""
    method = make_method(data, "lightgcn", PAPER_TRAINING | {"seed": seed, "threads": 1})
    assert isinstance(method, LightGCN)
    method.start()
    code, validation = UsualCode(method), Evaluator(data, 20, "valid", "drop")
    stopping, best, epoch = EarlyStopping.of(method.settings), code.ego.detach().clone(), 0
    while epoch < method.epochs and not stopping.exhausted(epoch):
        epoch += 1
        for batch in method.batches(epoch):
            code.step(batch)
        _put(method, code.ego.detach())
        method.make_embeddings()
        if stopping.improved(epoch, validation.recall_of(method)):
            best = code.ego.detach().clone()
    _put(method, best)
    method.finish()
    return method, {"epochs": epoch}


def _put(method: LightGCN, table: Tensor) -> None:
    at = 0
    for tile in method.tables.ego.tiles:
        tile.data.copy_(table[:, at : at + tile.shape[1]])
        at += tile.shape[1]


def _read(store: Path) -> list[dict[str, Any]]:
    if not store.exists():
        return []
    text = store.read_text(encoding="utf-8")
    whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]  # a kill may have cut the last line
    if whole != text:
        store.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


# ---------------------------------------------------------------------- the page


def write_page(lines: list[dict[str, Any]], out: Path, note: str = "") -> None:
    """Markdown for people, CSV of every training for machines."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / FIGURES).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ("data", "training", "seed", *COLUMNS), lineterminator="\n")
        writer.writeheader()
        places = [*DATA, *OLD, NEW, USUAL, ALS]
        names = ("data", "training")
        for line in sorted(lines, key=lambda one: (*(places.index(one[name]) for name in names), one["seed"])):
            writer.writerow({name: _short(line.get(name)) for name in writer.fieldnames})
    (out / PAGE).write_text(page(lines, note), encoding="utf-8")


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def page(lines: list[dict[str, Any]], note: str = "") -> str:
    """A table per dataset."""
    seeds = max((line["seed"] for line in lines), default=-1) + 1
    text = [
        "# Time to quality: the default training, old and new",
        "",
        "    python scripts/time_to_quality.py --coat DIR --kuairec DIR",
        "",
        f"LightGCN (D 64, L 3, one thread) with seeds 0 to {seeds - 1} of the training on one draw of each dataset",
        "(seed 0); mean ± standard deviation over seeds. Old style: a constant learning rate, validation after every",
        "epoch, patience of 50 epochs. The new default is explained in [training](../training.md). Early stopping sees",
        "validation alone; recall and NDCG are of the test split, overlap `drop`. The machine was shared: CPU",
        "seconds of the process count, wall seconds say little. The usual code (`benchmarks/yardsticks.py`: COO,",
        "autograd, unfused Adam) has the old default's protocol, start and triples; ALS is `als`, not tuned.",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}.",
        f"Every training: [{FIGURES}]({FIGURES}).",
        *(["Rows with fewer seeds are of a call that was ended before its last trainings."] if _fewer(lines) else []),
    ]
    text += ["", note] if note else []
    for name in DATA:
        here = [line for line in lines if line["data"] == name]
        if here:
            text += ["", f"## {TITLES[name]}", "", *_table(here)]
    return "\n".join(text) + "\n"


def _fewer(lines: list[dict[str, Any]]) -> bool:
    """Whether some rows have fewer seeds than others."""
    return len(set(Counter((line["data"], line["training"]) for line in lines).values())) > 1


def _table(lines: list[dict[str, Any]]) -> list[str]:
    rows = {training: [one for one in lines if one["training"] == training] for training in (*OLD, NEW, USUAL, ALS)}
    today = statistics.mean(one["cpu_seconds"] for one in rows[next(iter(OLD))]) if rows[next(iter(OLD))] else math.nan
    text = [
        "| training | seeds | epochs | CPU s | of the old default's | wall s | validation | recall@20 | NDCG@20 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for training, found in rows.items():
        if not found:
            continue
        epochs = [one["epochs"] for one in found if one["epochs"] is not None]
        cpu = statistics.mean(one["cpu_seconds"] for one in found)
        cells = [
            training,
            str(len(found)),
            f"{statistics.mean(epochs):.0f}" if epochs else "",
            f"{cpu:.2f}",
            f"{100 * cpu / today:.0f} %",
            f"{statistics.mean(one['wall_seconds'] for one in found):.1f}",
            *(_mean([one[name] for one in found]) for name in ("valid_recall@20", "recall@20", "ndcg@20")),
        ]
        text.append(f"| {' | '.join(cells)} |")
    return text


def _mean(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{spread}"


if __name__ == "__main__":
    main()
