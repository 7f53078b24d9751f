"""Training, runs, and the commands that use them: what can be wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch

from dpaa.ranking.rerankers.pc import PC
from tests.command import dpaa_ok
from tests.errors.workshop import RECS, Mistake, cut, drop_column, edit_json, edit_table, edit_tensor


def run(kind: str, spoil: Callable[[], object]) -> Mistake:
    """A run folder was spoiled; every command reads it the same way."""
    return Mistake(kind, "dpaa recommend run --out recs.csv", spoil=spoil)


def recs(kind: str, content: str) -> Mistake:
    """A recommendation file with this content is evaluated."""
    return Mistake(kind, "dpaa evaluate --recs recs.csv --dataset data", {"recs.csv": content})


def spoil_unfinished_checkpoint() -> None:
    Path("unfinished/checkpoint").mkdir()
    Path("unfinished/checkpoint/state.safetensors").write_bytes(b"x" * 100)


def no_numbers() -> None:
    edit_tensor(Path("run"), "item_embedding", lambda tensor: tensor * torch.nan)


def fewer_users() -> None:
    file = Path("run/users.parquet")
    pl.read_parquet(file)[1:].write_parquet(file)


def one_user() -> None:
    Path("small.csv").write_text("user_id,item_id\nu1,a\nu1,b\n")
    dpaa_ok("data", "log", "small.csv", "--valid", 0, "--test", 0, "--out", "made")


def other_users() -> None:
    """A run that claims to be of a dataset that has other users."""
    about = json.loads(Path("data/dataset.json").read_text())
    trained_on = {"name": "x", "fingerprint": about["fingerprint"], "path": None}
    edit_json(Path("numbers-run/manifest.json"), dataset=trained_on)


def link_run() -> None:
    Path("trade").mkdir()
    Path("trade/run").symlink_to(Path("run").resolve())


def keep_reranker() -> None:
    edit_json(Path("run/manifest.json"), rerank=PC(strength=0.2).as_json())


def begun() -> None:
    """A study of item-knn, done."""
    dpaa_ok("tune", "data", "--method", "item-knn", "--trials", 1, "--seeds", 0, "--out", "study")


def spoiled_storage() -> None:
    begun()
    Path("study/study.sqlite").write_bytes(b"nothing of the kind" * 100)


def half_a_result() -> None:
    """Every file a result could be in is cut short."""
    dpaa_ok("reproduce", "overall", "--coat", ".", "--seeds", 1, "--method", "most-popular")
    for file in Path("results/overall").iterdir():
        cut(file)


SECTIONS: dict[str, list[Mistake]] = {
    "Methods and hyperparameters": [
        Mistake("a method that does not exist", "dpaa train data --method lihgtgcn --out made"),
        Mistake("a hyperparameter that does not exist", "dpaa train data --set layer=2 --out made"),
        Mistake(
            "a hyperparameter of another method", "dpaa train data --method most-popular --set layers=2 --out made"
        ),
        Mistake("--set without a value", "dpaa train data --set layers --out made"),
        Mistake("text where a hyperparameter is a whole number", "dpaa train data --set layers=many --out made"),
        Mistake("a hyperparameter out of range", "dpaa train data --set learning_rate=0 --out made"),
        Mistake("a hyperparameter that is none of its words", "dpaa train data --set sampler=fair --out made"),
        Mistake("a seed below 0", "dpaa train data --seed -5 --out made"),
        Mistake(
            "a learning rate that makes the loss explode",
            "dpaa train data --set learning_rate=1e30 --set epochs=3 --set embedding_size=4 --out made",
            progress=True,
        ),
        Mistake(
            "a learning rate that makes the loss rise and rise",
            "dpaa train data --set learning_rate=1e3 --set epochs=50 --set embedding_size=4 --out made",
            progress=True,
        ),
        Mistake("a device that is not here", "dpaa train data --set device=cuda --out made"),
        Mistake("a dataset with one user who took everything", "dpaa train made --out run2", spoil=one_user),
    ],
    "Configuration files": [
        Mistake(
            "a configuration file that is not TOML",
            "dpaa train data --config settings.toml --out made",
            {"settings.toml": "layers: 2\n"},
        ),
        Mistake(
            "a configuration file with a table",
            "dpaa train data --config settings.toml --out made",
            {"settings.toml": "[train]\nlayers = 2\n"},
        ),
    ],
    "Pre-trained vectors": [
        Mistake(
            "a method that needs randomised pairs on a dataset without", "dpaa train data --method cause --out made"
        ),
        Mistake(
            "pre-trained vectors that are not there", "dpaa train data --method dpaa --pretrained nowhere --out made"
        ),
        Mistake(
            "a folder that holds no pre-trained run", "dpaa train data --method dpaa --pretrained diary --out made"
        ),
        Mistake("a pre-trained run on other ids", "dpaa train data --method dpaa --pretrained numbers-run --out made"),
        Mistake(
            "a run without vectors as pre-trained one",
            "dpaa train data --method dpaa --pretrained untested-run --out made",
        ),
        Mistake(
            "pre-trained vectors for a method without use for them",
            "dpaa train data --method lightgcn --pretrained run --out made",
        ),
    ],
    "Where a run is written": [
        Mistake("a finished run is there", "dpaa train data --out run"),
        Mistake("an unfinished run is there", "dpaa train data --out unfinished"),
        Mistake(
            "a finished run is trained further by nothing",
            "dpaa train data --out run --resume --set epochs=1 --set patience=3",
        ),
        Mistake("a warm start from nothing", "dpaa train data --out new --warm-start nowhere"),
        Mistake("a warm start of another width", "dpaa train data --out new --warm-start run --set embedding_size=8"),
        Mistake("something else is there", "dpaa train data --out diary"),
        Mistake(
            "a checkpoint that cannot be read",
            "dpaa train data --out unfinished --resume",
            spoil=spoil_unfinished_checkpoint,
        ),
    ],
    "Runs": [
        Mistake("a folder that is no run", "dpaa recommend diary"),
        Mistake("an unfinished run", "dpaa evaluate unfinished"),
        run("tensors that break off", lambda: cut(Path("run/model.safetensors"))),
        run("a table with a column missing", lambda: drop_column(Path("run/edges.parquet"), "user_id")),
        run(
            "a table with empty ids",
            lambda: edit_table(Path("run/items.parquet"), pl.lit(None, pl.String).alias("item_id")),
        ),
        run(
            "edges of users that are not in the run",
            lambda: edit_table(Path("run/edges.parquet"), pl.lit("bob").alias("user_id")),
        ),
        run("a run of fewer users", fewer_users),
        run("tensors with values that are no numbers", no_numbers),
        run("hyperparameters edited into nonsense", lambda: edit_json(Path("run/config.json"), layers="many")),
        run("hyperparameters that break off", lambda: cut(Path("run/config.json"))),
        run("a manifest of another format", lambda: edit_json(Path("run/manifest.json"), format=99)),
        run("a manifest whose dataset is no object", lambda: edit_json(Path("run/manifest.json"), dataset=[])),
    ],
    "Evaluation": [
        Mistake("lists longer than the catalogue", "dpaa evaluate run --k 1000000"),
        Mistake("an overlap convention that does not exist", "dpaa evaluate run --overlap ignore"),
        Mistake("no test pairs", "dpaa evaluate untested-run"),
        Mistake(
            "a dataset that has moved",
            "dpaa evaluate run",
            spoil=lambda: edit_json(
                Path("run/manifest.json"), dataset={"name": "demo", "fingerprint": "y", "path": "/gone/data"}
            ),
        ),
        Mistake("another dataset than that of the run", "dpaa evaluate run --dataset numbers"),
        Mistake("a check that cannot be read", "dpaa evaluate run --fail-if ndcg@20<0.98*"),
        Mistake("a check against a run that is not there", 'dpaa evaluate run --fail-if "ndcg@20 < 0.98 * nowhere"'),
        Mistake("a check of an unknown metric", "dpaa evaluate run --fail-if ndgc<1"),
        Mistake("a final fit with options of its own", "dpaa train data --final run --set layers=1 --out made"),
        Mistake("a final fit on another dataset", "dpaa train numbers --final run --out made"),
    ],
    "Recommendation": [
        Mistake("a limit without a number", "dpaa recommend run --at-most genre"),
        Mistake("a limit by a column nobody gave", "dpaa recommend run --at-most genre=3"),
        Mistake("a value without its column", "dpaa recommend run --only drama"),
        Mistake(
            "pairs to exclude with ids of another type",
            "dpaa recommend run --exclude-pairs new.parquet",
            spoil=lambda: pl.DataFrame({"user_id": ["new"], "item_id": [7]}).write_parquet("new.parquet"),
        ),
        Mistake("text where the model's ids are integers", "dpaa recommend numbers-run --users bob"),
        Mistake("nothing left to recommend", "dpaa recommend run --items i0001 --exclude i0001"),
        Mistake("a file of ids that is not there", "dpaa recommend run --users @who.txt"),
        Mistake("an empty file of ids", "dpaa recommend run --users @who.csv", {"who.csv": "\n"}),
        Mistake(
            "a history with ids of another type",
            "dpaa recommend run --history new.parquet",
            spoil=lambda: pl.DataFrame({"user_id": ["new"], "item_id": [7]}).write_parquet("new.parquet"),
        ),
        Mistake("no ending", "dpaa recommend run --out recs"),
        Mistake("a folder for the file that is not there", "dpaa recommend run --out no/recs.csv"),
        Mistake("a place where nobody may write", "dpaa recommend run --out /proc/recs.csv", progress=True),
    ],
    "Calls": [
        Mistake("a command that does not exist", "dpaa trian"),
        Mistake("an option that does not exist", "dpaa train data --epochs 3 --out made"),
        Mistake("an option without its value", "dpaa train data --out"),
        Mistake("an argument too many", "dpaa evaluate run again"),
        Mistake("an argument missing", "dpaa recommend"),
    ],
    "Recommendation files": [
        Mistake("neither a run nor recommendations", "dpaa evaluate"),
        Mistake("recommendations without a dataset", "dpaa evaluate --recs log.csv"),
        recs("recommendations without users", "who,item_id\nu0002,i0001\n"),
        recs("a rank given twice", RECS + "u0002,i0003,0.1,2\n"),
        recs("the same item recommended twice", RECS + "u0002,i0001,0.1,3\n"),
        recs("recommendations for nobody known", "user_id,item_id\nbob,i0001\n"),
        recs("recommendations of nothing known", "user_id,item_id\nu0002,hat\n"),
        Mistake("recommendations with ids of another type", "dpaa evaluate --recs recs.csv --dataset numbers"),
    ],
    "Audits": [
        Mistake("a check on a number that does not exist", 'dpaa audit log.csv --fail-if "headshare>0.8"'),
        Mistake("a check without comparison", 'dpaa audit log.csv --fail-if "gini"'),
        Mistake("a check on lists without lists", 'dpaa audit log.csv --fail-if "coverage@20<0.1"'),
        Mistake("lists cut where there are none", "dpaa audit log.csv --k 5"),
        Mistake(
            "lists whose known users have unknown items only",
            "dpaa audit log.csv --recs lists.csv",
            {"lists.csv": "user_id,item_id,rank\nu0,elsewhere,1\nsomebody,i0,1\n"},
        ),
        Mistake("an audit page that is not named as one", "dpaa audit log.csv --html page.pdf"),
    ],
    "Comparisons": [
        Mistake("one run to compare", "dpaa compare run"),
        Mistake("something to compare that is not there", "dpaa compare run nowhere"),
        Mistake("a baseline that is not there", "dpaa compare run a.csv --baseline b"),
        Mistake("a metric that does not exist", "dpaa compare run a.csv --metric recal"),
        Mistake("a margin that is a percentage", "dpaa compare run a.csv --margin 5"),
        Mistake("a comparison in another format", "dpaa compare run a.csv --out c.pdf"),
    ],
    "Pages": [
        Mistake("a page of something that is not there", "dpaa report gone --out page.html"),
        Mistake("a page of a folder that is neither dataset nor run", "dpaa report diary --out page.html"),
        Mistake("a page of a file that is not JSON", "dpaa report log.csv --out page.html"),
        Mistake(
            "a page of JSON that is no comparison or audit",
            "dpaa report other.json --out page.html",
            {"other.json": '{"kind": "shopping list"}'},
        ),
        Mistake(
            "a page of an audit that is damaged",
            "dpaa report audit.json --out page.html",
            {"audit.json": '{"kind": "audit", "numbers": {"log_gini": 0.9}}'},
        ),
        Mistake(
            "a page of a run with spoiled metrics",
            "dpaa report run --out page.html",
            {"run/metrics.json": '{"metrics": 3}'},
        ),
        Mistake(
            "a page of a run with other users than its dataset",
            "dpaa report data numbers-run --out page.html",
            spoil=other_users,
        ),
        Mistake(
            "figures of a page in a format that does not exist",
            "dpaa report data --out page.html --figures figures --figure-format gif",
        ),
    ],
    "The popularity dial": [
        Mistake("a dial that is no number", "dpaa recommend run --popularity-dial much --out recs.csv"),
        run(
            "a stored dial that is no number",
            lambda: edit_json(Path("run/manifest.json"), dial={"kappa": "high", "suggested": 0.5}),
        ),
        Mistake(
            "a stored dial that is no curve",
            "dpaa evaluate run",
            spoil=lambda: edit_json(Path("run/manifest.json"), dial={"kappa": 3}),
        ),
        Mistake("the dial of lists in a file", "dpaa evaluate --recs a.csv --dataset data --popularity-dial 1"),
        Mistake("an objective that does not exist", "dpaa evaluate run --dial-objective gini"),
    ],
    "Re-ranking": [
        Mistake("re-ranking without a dataset", "dpaa rerank recs.csv --method xquad --out new.csv"),
        Mistake(
            "re-ranking by what does not exist", "dpaa rerank recs.csv --dataset data --method xqaud --out new.csv"
        ),
        Mistake(
            "a strength beyond its range",
            "dpaa rerank recs.csv --dataset data --method xquad --strength 1.5 --out new.csv",
        ),
        Mistake(
            "a hyperparameter that the re-ranker has not",
            "dpaa rerank recs.csv --dataset data --method scale --set deph=50 --out new.csv",
        ),
        Mistake(
            "the dial over a file", "dpaa rerank recs.csv --dataset data --method dial --set kappa=-1 --out new.csv"
        ),
        Mistake(
            "re-ranking a file into itself",
            "dpaa rerank recs.csv --dataset data --method xquad --out recs.csv --overwrite",
        ),
    ],
    "The best trade-off": [
        Mistake("a goal that is none", "dpaa debias data --goal fairness --methods ease --out trade"),
        Mistake("more accuracy than all to keep", "dpaa debias data --keep-accuracy 98 --methods ease --out trade"),
        Mistake(
            "a promise and a target",
            "dpaa debias data --keep-accuracy 0.9 --target 'coverage>0.5' --methods ease --out trade",
        ),
        Mistake("a target without a number", "dpaa debias data --target coverage --methods ease --out trade"),
        Mistake("an estimate that is none", "dpaa debias data --estimate best --methods ease --out trade"),
        Mistake("no time at all", "dpaa debias data --budget 0 --methods ease --out trade"),
        Mistake("nothing to debias", "dpaa debias data --methods , --out trade"),
        Mistake("a frontier among other things", "dpaa debias data --methods ease --out diary"),
        Mistake("a frontier without validation", "dpaa debias untested --methods ease --out trade"),
        Mistake("a frontier whose run is a link", "dpaa debias data --methods ease --out trade", spoil=link_run),
    ],
    "Other forms and systems": [
        Mistake("a shard without a folder", "dpaa recommend run --shard 1/4"),
        Mistake("a shard that is none", "dpaa recommend run --shard 5/4 --out lists"),
        Mistake("shards in another folder's place", "dpaa recommend run --shard 1/4 --out data"),
        Mistake("items like one that is unknown", "dpaa similar run --item hat"),
        Mistake("similar items of a method without vectors", "dpaa similar untested-run --item i1"),
        Mistake("a system that vectors cannot be exported to", "dpaa export run --to oracle --out e"),
        Mistake("an export of a method that has no vectors", "dpaa export untested-run --to npz --out e"),
        Mistake("an export of a run that re-ranks its lists", "dpaa export run --to npz --out e", spoil=keep_reranker),
        Mistake("an export over something else", "dpaa export run --to npz --out diary --overwrite"),
        Mistake("a benchmark of one method", "dpaa benchmark data --methods ease"),
        Mistake("a benchmark over something else", "dpaa benchmark data --methods ease,most-popular --out diary"),
        Mistake("drift that nothing is older than", 'dpaa audit log.csv --fail-if "drift_gini>0"'),
        Mistake("drift at a time when nothing was", "dpaa audit log.csv --against 0"),
        Mistake("metrics under another ending", "dpaa audit log.csv --metrics-out m.json"),
    ],
    "Studies": [
        Mistake("a goal that does not exist", "dpaa tune data --method ease --metric fame@20"),
        Mistake("a loss without its share", "dpaa tune data --method ease --most-loss ndcg@20"),
        Mistake("a search space that does not exist", "dpaa tune data --method dpaa --space narrow"),
        Mistake(
            "a hyperparameter both fixed and searched", "dpaa tune data --method dpaa --set layers=2 --try layers=1,2"
        ),
        Mistake("a seed among the hyperparameters of a search", "dpaa tune data --method dpaa --set seed=3"),
        Mistake("no trials", "dpaa tune data --method dpaa --trials 0"),
        Mistake("another study in the folder", "dpaa tune data --method ease --out study", spoil=begun),
        Mistake(
            "a study whose storage is spoiled", "dpaa tune data --method item-knn --out study", spoil=spoiled_storage
        ),
    ],
    "Reproductions": [
        Mistake("a table of the paper that does not exist", "dpaa reproduce tables --coat . --seeds 1"),
        Mistake("no data to reproduce on", "dpaa reproduce overall"),
        Mistake("a budget that does not exist", "dpaa reproduce overall --coat . --seeds 1 --budget huge"),
        Mistake("severity without KuaiRec", "dpaa reproduce severity --coat . --seeds 1"),
        Mistake("a folder of data that is not there", "dpaa reproduce overall --coat nowhere"),
        Mistake("a folder without Coat's files", "dpaa reproduce overall --coat diary"),
        Mistake("a file where the tables should go", "dpaa reproduce overall --coat . --seeds 1 --out log.csv"),
        Mistake(
            "a result that is cut short",
            "dpaa reproduce overall --coat . --seeds 1 --method most-popular",
            spoil=half_a_result,
        ),
    ],
    "Services": [
        Mistake("a service for the world without a token", "dpaa serve run --host 0.0.0.0"),
        Mistake("a service with a short token", "dpaa serve run --token-file token", {"token": "secret\n"}),
        Mistake("a service with an empty token", "dpaa serve run --token-file token", {"token": "\n"}),
        Mistake("an address that is not this machine's", "dpaa serve run --host 192.0.2.1 --token-file token"),
    ],
}
