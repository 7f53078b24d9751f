"""`dpaa rerank`, and re-rankers in other commands."""

from __future__ import annotations

from tests.errors.mistake import Mistake

RECS = "user_id,item_id,score,rank\nu0002,i0001,0.9,1\nu0002,i0002,0.5,2\n"


def reranking(kind: str, words: str, *says: str, recs: str = RECS) -> Mistake:
    """`dpaa rerank` on a small file, unless the words say otherwise."""
    return Mistake(kind, f"dpaa rerank {words} --out new.csv", says, {"recs.csv": recs})


RERANKING = [
    reranking("re-ranking without a dataset", "recs.csv --method xquad", "recs.csv does not say how popular"),
    reranking("re-ranking by nothing", "recs.csv --dataset data", "'--method'"),
    reranking(
        "re-ranking by what does not exist",
        "recs.csv --dataset data --method xqaud",
        "there is no re-ranker 'xqaud'",
        "did you mean xquad",
    ),
    reranking(
        "a strength beyond its range",
        "recs.csv --dataset data --method xquad --strength 1.5",
        "hyperparameter strength: input should be less than or equal to 1, got 1.5",
    ),
    reranking(
        "a strength that is no number",
        "recs.csv --dataset data --method pc --strength nan",
        "hyperparameter strength: input should be a finite number",
    ),
    reranking(
        "a setting that the re-ranker has not",
        "recs.csv --dataset data --method scale --set deph=50",
        "re-ranker scale has no hyperparameter 'deph'; did you mean depth?",
    ),
    reranking(
        "a depth of nothing",
        "recs.csv --dataset data --method steck --set depth=0",
        "hyperparameter depth: input should be greater than or equal to 1",
    ),
    reranking(
        "a setting without a value",
        "recs.csv --dataset data --method xquad --set coverage",
        "--set takes NAME=VALUE, got 'coverage'",
    ),
    reranking(
        "the dial over a file",
        "recs.csv --dataset data --method dial --set kappa=-1",
        "re-ranker dial needs the scores of all items, which a file does not have; name a run",
    ),
    reranking("re-ranking what is not there", "no.csv --dataset data --method xquad", "there is no file no.csv"),
    reranking("re-ranking for nobody known", "recs.csv --dataset data --method xquad", "no user in recs.csv",
              recs="user_id,item_id\nbob,i0001\n"),
    reranking(
        "re-ranking with a score that is text",
        "recs.csv --dataset data --method xquad",
        "first 'good' in line 2",
        recs="user_id,item_id,score,rank\nu0002,i0001,good,1\n",
    ),
    reranking(
        "re-ranking a folder that is no run", "diary --method xquad", "diary", "run"
    ),
    reranking(
        "re-ranking a run on another dataset",
        "run --dataset numbers --method xquad",
        "the model was trained on another dataset than numbers (fingerprints differ); leave --dataset out",
    ),
    Mistake(
        "re-ranking a file into itself",
        "dpaa rerank recs.csv --dataset data --method xquad --out recs.csv --overwrite",
        "recs.csv is what is re-ranked; name another file for --out",
        {"recs.csv": RECS},
    ),
    Mistake(
        "re-ranking into a format that is not known",
        "dpaa rerank recs.csv --dataset data --method xquad --out new.xlsx",
        ("new.xlsx", ".csv"),
        {"recs.csv": RECS},
    ),
    Mistake(
        "re-ranking over a file that is there",
        "dpaa rerank recs.csv --dataset data --method xquad --out log.csv",
        ("log.csv already exists", "--overwrite"),
        {"recs.csv": RECS},
    ),
]  # fmt: skip

SECTIONS = {"Re-ranking": RERANKING}
