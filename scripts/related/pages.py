"""The committed trainings, and what is told of them: docs/results/related.md and a table in docs/methods.md."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from scripts.related.trainings import BASE, DATA, MEASURED, RATES, RERANKED, SEEDS, TRIALS, WORLD, methods, space_of

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "results" / "related.parquet"
PAGE = ROOT / "docs" / "results" / "related.md"
MAP = ROOT / "docs" / "methods.md"
BEGIN, END = "<!-- made by scripts/related_study.py --write: begin -->", "<!-- end -->"
TITLES = {
    "coat": "Coat",
    "world": f"Demo world, {WORLD[0]} users × {WORLD[1]} items",
    "s=0": "KuaiRec, severity 0",
    "s=5": "KuaiRec, severity 5",
    "s=9": "KuaiRec, severity 9",
}
SHORT = {"coat": "Coat", "world": "demo world", "s=0": "severity 0", "s=5": "severity 5", "s=9": "severity 9"}
NAMES = {
    "recall@20": "recall@20",
    "ndcg@20": "NDCG@20",
    "recall@20/niche": "niche recall@20",
    "arp@20": "ARP@20",
    "coverage@20": "coverage@20",
}
MISSING = "## What is missing"
WHOLE = 1500
"""Lines of a study that has come to its end, at least."""
INTRODUCTION = f"""\
Lists of 20 on the unbiased test split, overlap `drop`; mean ± standard deviation over seeds. A seed draws the data too
(Coat's validation users, KuaiRec's log, the whole demo world), the same for all methods, so most of a deviation is
common to all rows: whether two rows differ is a question for `dpaa compare`. ARP is the mean training count of
recommended items (lower: less popular), coverage the share of items that anybody is recommended; niche recall counts
only items outside of those that make up 80 % of the log. CPU seconds are of one thread on a shared machine, training
alone. Rows `re-ranked` are LightGCN's scores with the re-ranker at its default strength. The demo world is smaller than
that of `dpaa demo` ({WORLD[0]} × {WORLD[1]}): every method was to be trained on it several times. `cause` learns from
half of the validation pairs, which are of randomised exposure, and stops by the other half.

**Tuned**: {TRIALS} settings for each method, its defaults among them, the others drawn at random from its own space (as
in `dpaa tune`, with learning rates {", ".join(f"{rate:g}" for rate in RATES)}); chosen by recall@20 on the validation
split of seed 0, then trained with all seeds. So few say what a small effort brings, not how good a method can be.

**Published numbers.** LightGCN, NCL, SGL, DirectAU, SimGCL and XSimGCL have published figures on Yelp2018, UltraGCN,
GF-CF and SVD-GCN on Gowalla, Yelp2018 and MovieLens-1M. Those data were not at hand, so none of the figures is checked
here; that our losses, gradients and scores are those of public code is shown on small inputs (`tests/golden`)."""
Line = Mapping[str, Any]


def write_store(lines: Sequence[Line]) -> None:
    """All lines as one small file, sorted: the same trainings give the same bytes."""
    columns = ("data", "method", "kind", "seed", "epochs", "cpu", "valid", *MEASURED, "error")
    rows = []
    for line in lines:
        kept = {name: line.get(name) for name in columns}
        rows.append(kept | {"settings": json.dumps(line["settings"], sort_keys=True) if line["settings"] else None})
    numbers = {"seed": pl.Int64, "epochs": pl.Int64, "cpu": pl.Float64, "valid": pl.Float64}
    kinds = numbers | dict.fromkeys(MEASURED, pl.Float64) | dict.fromkeys(("error", "settings"), pl.String)
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=kinds).unique(
        ["data", "method", "kind", "seed"], keep="last"
    )
    frame = frame.with_columns(pl.col("cpu").round(1), pl.col("valid", *MEASURED).round(5))
    STORE.parent.mkdir(exist_ok=True)
    frame.sort("data", "method", "kind", "seed").write_parquet(STORE, compression="zstd", compression_level=19)


def read_store() -> list[dict[str, Any]]:
    """The lines that hold numbers; those of the job "re-rankers" only say that others are there."""
    return pl.read_parquet(STORE).filter(pl.col("method") != "re-rankers").to_dicts()


def stored_lines() -> list[dict[str, Any]]:
    """All lines as a study goes on from them."""
    lines = pl.read_parquet(STORE).to_dicts() if STORE.exists() else []
    return [
        {name: value for name, value in line.items() if value is not None or name in ("epochs", "valid")}
        | {"settings": json.loads(line["settings"]) if line["settings"] else {}}
        for line in lines
    ]


def write() -> None:
    """Both pages from the store."""
    lines = read_store()
    PAGE.write_text(page(lines), encoding="utf-8")
    MAP.write_text(with_map(MAP.read_text(encoding="utf-8"), lines), encoding="utf-8")


# ---------------------------------------------------------------------- the page of results


def page(lines: Sequence[Line]) -> str:
    """Two tables for each dataset: defaults, and settings chosen on validation."""
    text = [
        "# All methods and re-rankers on the same data",
        "",
        "Made by",
        "",
        "    python scripts/related_study.py --data DIR --work WORK --write",
        "",
        "(`DIR` as in its docstring; without `--work` the pages alone are made again from",
        "[results/related.parquet](../../results/related.parquet), a row for every training.)",
        "",
        *(["**Not finished**: the last section says what is missing.", ""] if len(lines) < WHOLE else []),
        INTRODUCTION,
    ]
    for data in DATA:
        here = [line for line in lines if line["data"] == data and not line["method"].startswith("curve")]
        if here:
            text += ["", f"## {TITLES[data]}", "", *_tables(here)]
    return "\n".join([*text, "", MISSING, "", *_missing(lines)]) + "\n"


def _tables(lines: Sequence[Line]) -> list[str]:
    parts = []
    for kind, heading in (("default", "Default settings"), ("tuned", f"Best of {TRIALS} settings on validation")):
        rows = grouped(line for line in lines if line["kind"] == kind and line["error"] is None)
        if not rows:
            continue
        parts += [f"### {heading}" if kind == "default" else f"\n### {heading}", "", *_table(rows)]
    return parts


def _table(rows: Mapping[str, Sequence[Line]]) -> list[str]:
    head = ["method", "seeds", "epochs", "CPU s", *NAMES.values()]
    text = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, found in sorted(rows.items(), key=lambda row: -mean(line["recall@20"] for line in row[1])):
        epochs = [line["epochs"] for line in found if line["epochs"] is not None]
        again = name.startswith(RERANKED)
        cells = [
            f"**{name}**" if name == BASE else name,
            str(len(found)),
            f"{mean(epochs):.0f}" if epochs and not again else "",
            f"{mean(line['cpu'] for line in found):.1f}" if not again else "",
            *(spread([line[metric] for line in found], 1 if metric == "arp@20" else 4) for metric in NAMES),
        ]
        text.append(f"| {' | '.join(cells)} |")
    return text


def _missing(lines: Sequence[Line]) -> list[str]:
    """Rows with fewer seeds than meant, and what could not be trained, by dataset."""
    text = []
    for data in DATA:
        for kind in ("default", "tuned"):
            done = {name: len(found) for name, found in grouped(_of(lines, data, kind)).items()}
            refused = {line["method"]: line["error"] for line in lines if line["data"] == data and line["error"]}
            able = [name for name in methods() if name not in refused and (kind == "default" or space_of(name))]
            few = [f"`{name}` ({done.get(name, 0)})" for name in able if done.get(name, 0) < SEEDS[data]]
            if few:
                whole = len(few) == len(able) and not done
                told = "all" if whole else ", ".join(few)
                text.append(f"- {TITLES[data]}, {kind}, seeds of {SEEDS[data]}: {told}.")
        refused = {line["method"]: line["error"] for line in lines if line["data"] == data and line["error"]}
        text += [f"- {TITLES[data]}: `{name}` cannot be trained: {error}." for name, error in refused.items()]
    return text or ["Nothing."]


def _of(lines: Iterable[Line], data: str, kind: str) -> list[Line]:
    return [line for line in lines if line["data"] == data and line["kind"] == kind and line["error"] is None]


def grouped(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """By method."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line["method"], []).append(line)
    return groups


def mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return statistics.fmean(known) if known else math.nan


def spread(values: Sequence[float], digits: int = 4) -> str:
    """`0.1500 ± 0.0040`."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not known:
        return "–"
    deviation = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.fmean(known):.{digits}f}{deviation}"


# ---------------------------------------------------------------------- the map of methods


def with_map(text: str, lines: Sequence[Line]) -> str:
    """The page with its generated table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{MAP} has no place for the table: put {BEGIN!r} and {END!r} where it shall stand")
    return f"{before}{BEGIN}\n\n{popularity_table(lines)}\n\n{END}{after}"


def popularity_table(lines: Sequence[Line]) -> str:
    """Recall and ARP as multiples of LightGCN's on the same seeds, and niche recall; default settings."""
    shown = [data for data in DATA if _of(lines, data, "default")]
    text = [f"| | {' | '.join(SHORT[data] for data in shown)} |", f"|{'---|' * (len(shown) + 1)}"]
    tables = {data: grouped(_of(lines, data, "default")) for data in shown}
    base = [_absolute(tables[data].get(BASE, ())) for data in shown]
    text.append(f"| **{BASE}**: recall, ARP, niche recall | {' | '.join(base)} |")
    names = [name for name in methods() if name != BASE]
    names += sorted({name for table in tables.values() for name in table if name.startswith(RERANKED)})
    for name in names:
        cells = [_multiples(tables[data], name) for data in shown]
        if any(cells):
            told = f"lightgcn, {name}" if name.startswith(RERANKED) else name
            text.append(f"| {told} | {' | '.join(cells)} |")
    return "\n".join(text)


def _absolute(found: Sequence[Line]) -> str:
    recall, arp, niche = (mean(line[metric] for line in found) for metric in ("recall@20", "arp@20", "recall@20/niche"))
    return f"{recall:.3f}, {arp:.1f}, {niche:.3f}"


def _multiples(table: Mapping[str, Sequence[Line]], name: str) -> str:
    """`recall × · ARP × · niche recall`, by the seeds that both have."""
    base = {line["seed"]: line for line in table.get(BASE, ())}
    own = [line for line in table.get(name, ()) if line["seed"] in base]
    if not own:
        return ""
    recall, arp = (
        mean(line[metric] for line in own) / mean(base[line["seed"]][metric] for line in own)
        for metric in ("recall@20", "arp@20")
    )
    return f"{recall:.2f} · {arp:.2f} · {mean(line['recall@20/niche'] for line in own):.3f}"
