"""Does debiasing stay good?  Policies in the feedback loop, on KuaiRec's observed taste and in the simulated world.

    python scripts/feedback_loop.py KUAIREC [--out docs/results/feedback-loop.csv] [--seeds 3] [--rounds 10]

KUAIREC is a folder with `valid.txt` and `test_ood.txt` in list form: all positives of the fully observed matrix.  Lines
are written per source, policy, seed and round when a policy has been run; the same call continues where it was stopped.
`--sensitivity` writes the same for click models that differ in one parameter from the default, in the world.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import polars as pl

from dpaa.data.dataset import Dataset
from dpaa.report import simulation_page
from dpaa.simulation import ClickModel, Simulation, simulate

GCN = "embedding_size=64,learning_rate=0.01,epochs=30,threads=1"
CHOICE = "debias,methods=ease lightgcn item-knn most-popular,keep_accuracy=0.98," + GCN
POLICIES = {
    "oracle": "oracle",
    "random": "random",
    "most-popular": "most-popular",
    "ease": "ease",
    "ease, dial −0.4": "ease+dial,kappa=-0.4",
    "lightgcn": f"lightgcn,{GCN}",
    "lightgcn, not refitted": f"lightgcn,{GCN},refit=never",
    "debias": CHOICE,
    "debias, not refitted": f"{CHOICE},refit=never",
    "dpaa": f"dpaa,{GCN}",
}
MODELS = {
    "default": ClickModel(),
    "position 1": ClickModel(position=1.0),
    "slots 5": ClickModel(slots=5),
    "noise 0.05": ClickModel(noise=0.05),
    "organic 0.2": ClickModel(organic=0.2),
    "repeat": ClickModel(repeat=True),
}
NOT_IN_THE_WORLD = ("dpaa",)


def kuairec(folder: Path) -> Dataset:
    """All positives, as one training split."""
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("valid.txt", "test_ood.txt")]
    lines = [line.split() for text in texts for line in text.splitlines()]
    rows = [(int(user), int(item)) for user, *items in lines for item in items]
    pairs = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row").unique()
    return Dataset.from_frame(pairs, name="kuairec")


def write_pages(done: pl.DataFrame, folder: Path) -> None:
    """The trajectories of each source."""
    about = {"severity": 1.0, "k": 20, "rounds": int(done["round"].max()), "in_words": ClickModel().in_words()}  # type: ignore[arg-type]
    words = {"kuairec": "KuaiRec, 1,411 users and 3,276 items with observed taste", "world": "the simulated world"}
    for source, words_of in words.items():
        rows = done.filter(pl.col("source") == source)
        rows = rows.select(one.name for one in rows if one.null_count() < len(rows))
        by = "publisher" if source == "world" else None
        more = {"source": words_of, "seeds": rows["seed"].unique().to_list(), "group_by": by}
        simulation_page(Simulation(rows, about | more), folder / f"feedback-loop-{source}.html")


def main() -> None:
    """Run what is not done yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kuairec", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/feedback-loop.csv"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--sensitivity", action="store_true")
    parser.add_argument("--pages", type=Path, help="only write a page per source from what is done into this folder")
    parser.add_argument("--only", nargs="+", default=[], help="sources and policies; others are left out")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no policy after this time")
    given, began = parser.parse_args(), time.monotonic()
    if given.pages:
        write_pages(pl.read_csv(given.out, infer_schema_length=None), given.pages)
        return
    sources = {"kuairec": kuairec(given.kuairec), "world": "world:1500x1000"}
    work = [
        (source, name, policy, "default", seed)
        for seed in range(given.seeds)
        for source in sources
        for name, policy in POLICIES.items()
        if source != "world" or name not in NOT_IN_THE_WORLD
    ]
    if given.sensitivity:
        work = [("world", name, POLICIES[name], model, 0) for model in MODELS for name in ("ease", "ease, dial −0.4")]
    if given.only:
        work = [one for one in work if one[0] in given.only and one[1] in given.only]
    done = pl.read_csv(given.out, infer_schema_length=None) if given.out.exists() else None
    for source, name, policy, model, seed in work:
        key = (pl.col("source") == source, pl.col("policy") == name, pl.col("clicks") == model, pl.col("seed") == seed)
        if (done is not None and done.filter(*key).height) or time.monotonic() - began > 60 * given.minutes:
            continue
        by = "publisher" if source == "world" else None
        made = simulate(sources[source], [policy], rounds=given.rounds, seeds=[seed], clicks=MODELS[model], group_by=by)
        rows = made.frame.with_columns(
            pl.lit(source).alias("source"),
            pl.lit(name).alias("policy"),
            pl.lit(model).alias("clicks"),
            pl.lit(made.about["policies"][policy][0]).alias("what"),
        )
        rows = rows.select(pl.exclude("^exposure.*=.*$")).with_columns(pl.selectors.float().round(5))
        head = ["source", "policy", "clicks", "seed", "round"]
        rows = rows.select(*head, pl.exclude(*head))
        done = rows if done is None else pl.concat([done, rows], how="diagonal_relaxed")
        done.select(*head, pl.exclude(*head, "what"), "what").write_csv(given.out)
        print(f"{source}, {name}, {model}, seed {seed}: {rows['cpu_seconds'].sum():.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
