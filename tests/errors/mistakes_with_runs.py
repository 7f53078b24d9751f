"""Training, run folders, evaluation and recommendation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch

from tests.errors.mistake import Mistake
from tests.errors.workshop import cut, drop_column, edit_json, edit_table, edit_tensor, half


def train(kind: str, options: str, *says: str, config: str | None = None) -> Mistake:
    files = {} if config is None else {"settings.toml": config}
    return Mistake(kind, f"dpaa train data {options} --out made", says, files)


def run(kind: str, spoil: Callable[[], object], *says: str) -> Mistake:
    """A run folder was spoiled; `evaluate` and `recommend` read it the same way."""
    return Mistake(kind, "dpaa recommend run --out recs.csv", says, spoil=spoil)


def change(file: str, **changes: object) -> Callable[[], object]:
    return lambda: edit_json(Path("run", file), **changes)


def replace(file: str, content: str | bytes) -> Callable[[], object]:
    return lambda: Path("run", file).write_bytes(content.encode() if isinstance(content, str) else content)


def tensor(name: str, spoiled: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], object]:
    return lambda: edit_tensor(Path("run"), name, spoiled)


def table(file: str, *columns: pl.Expr) -> Callable[[], object]:
    return lambda: edit_table(Path("run", file), *columns)


def spoil_unfinished_checkpoint() -> None:
    Path("unfinished/checkpoint").mkdir()
    Path("unfinished/checkpoint/state.safetensors").write_bytes(b"x" * 100)


def reverse_users() -> None:
    file = Path("run/users.parquet")
    pl.read_parquet(file).reverse().write_parquet(file)


def fewer_users() -> None:
    file = Path("run/users.parquet")
    pl.read_parquet(file)[1:].write_parquet(file)


METHODS = [
    train("a method that does not exist", "--method lihgtgcn", "no method 'lihgtgcn'", "did you mean lightgcn?"),
    train("an empty method name", "--method ''", "there is no method ''"),
    train("a setting that does not exist", "--set layer=2", "no hyperparameter 'layer'", "did you mean layers?"),
    train(
        "a setting of another method",
        "--method most-popular --set layers=2",
        "most-popular has no hyperparameter 'layers'",
    ),
    train("--set without a value", "--set layers", "--set takes NAME=VALUE, got 'layers'"),
    train("--set without a name", "--set =3", "--set takes NAME=VALUE, got '=3'"),
    train("text where a setting is a whole number", "--set layers=many", "hyperparameter layers", "integer", "'many'"),
    train("a decimal where a setting is a whole number", "--set epochs=1.5", "hyperparameter epochs", "'1.5'"),
    train("a setting out of range", "--set learning_rate=0", "hyperparameter learning_rate", "greater than 0", "'0'"),
    train("a setting that is not a number", "--set l2=nan", "hyperparameter l2", "'nan'"),
    train("a setting that is none of its words", "--set sampler=fair", "'user-uniform' or 'interaction'", "'fair'"),
    train("a seed below 0", "--seed -5", "seed", "greater than or equal to 0", "-5"),
    train("a seed that is too large", "--seed 9223372036854775808", "seed", "less than"),
    Mistake(
        "a learning rate that makes the loss explode",
        "dpaa train data --set learning_rate=1e30 --set epochs=3 --set embedding_size=4 --out made",
        ("the loss became", "smaller learning_rate"),
        progress=True,
    ),
    Mistake(
        "a learning rate that makes the loss rise and rise",
        "dpaa train data --set learning_rate=1e3 --set epochs=50 --set embedding_size=4 --out made",
        ("training diverged", "it began with", "learning_rate 1000", "smaller learning_rate"),
        progress=True,
    ),
    train("a device that is not here", "--set device=cuda", "no CUDA device here; use device=cpu"),
    Mistake(
        "a dataset with one user who took everything",
        "dpaa train made --out run2",
        "there is nothing to learn",
        spoil=lambda: one_user(),
    ),
    Mistake(
        "a dataset with one item",
        "dpaa train made --out run2",
        "there is nothing to learn",
        spoil=lambda: one_item(),
    ),
]


def one_user() -> None:
    _prepared("user_id,item_id\nu1,a\nu1,b\n")


def one_item() -> None:
    _prepared("user_id,item_id\nu1,a\nu2,a\n")


def _prepared(log: str) -> None:
    from tests.command import dpaa_ok

    Path("small.csv").write_text(log)
    dpaa_ok("data", "log", "small.csv", "--valid", 0, "--test", 0, "--out", "made")


CONFIGS = [
    train("a configuration file that is not there", "--config no.toml", "there is no file no.toml"),
    train("a folder as configuration file", "--config diary", "diary is a folder"),
    train(
        "a configuration file that is not TOML",
        "--config settings.toml",
        "settings.toml is not valid TOML",
        "line 1",
        config="layers: 2\n",
    ),
    train(
        "the same setting twice in a file",
        "--config settings.toml",
        "settings.toml is not valid TOML",
        config="layers = 2\nlayers = 3\n",
    ),
    train(
        "a configuration file with a table",
        "--config settings.toml",
        "settings.toml",
        "settings.toml has a table or a class; write lines such as layers = 2",
        config="[train]\nlayers = 2\n",
    ),
    train(
        "a list as a setting in a file",
        "--config settings.toml",
        "hyperparameter layers",
        "[1, 2]",
        config="layers = [1, 2]\n",
    ),
    train(
        "a date as a setting in a file",
        "--config settings.toml",
        "hyperparameter layers",
        config="layers = 2024-01-01\n",
    ),
    train(
        "a wrong word as a setting in a file",
        "--config settings.toml",
        "hyperparameter sampler",
        "'fair'",
        config='sampler = "fair"\n',
    ),
    train(
        "a method in a file that does not exist",
        "--config settings.toml",
        "there is no method 'xyzzy'",
        config='method = "xyzzy"\n',
    ),
    Mistake(
        "a configuration file that is not UTF-8",
        "dpaa train data --config settings.toml --out made",
        "settings.toml is not",
        {"settings.toml": b'sampler = "\xff"\n'},
    ),
]


def pretrained(kind: str, given: str, *says: str, data: str = "data") -> Mistake:
    return Mistake(kind, f"dpaa train {data} --method dpaa --pretrained {given} --out made", says)


PRETRAINED = [
    Mistake(
        "a method that needs randomised pairs on a dataset without",
        "dpaa train data --method cause --out made",
        ("has none", "dpaa data randomised"),
    ),
    pretrained("pre-trained vectors that are not there", "nowhere", "there is no run folder nowhere"),
    pretrained("a folder that holds no pre-trained run", "diary", "diary is not a run folder"),
    pretrained("a pre-trained run on other ids", "numbers-run", "numbers-run has no vector for"),
    pretrained("a pre-trained run on ids of another type", "run", "run has no vector for", data="numbers"),
    pretrained("a run without vectors as pre-trained one", "untested-run", "most-popular, which has no embeddings"),
    Mistake(
        "pre-trained vectors for a method without use for them",
        "dpaa train data --method lightgcn --pretrained run --out made",
        "leave --pretrained out",
    ),
]

PLACES = [
    Mistake("a finished run is there", "dpaa train data --out run", "run holds a finished run; pass --overwrite"),
    Mistake("an unfinished run is there", "dpaa train data --out unfinished", ("unfinished run", "--resume")),
    Mistake(
        "a finished run cannot be resumed with other settings",
        "dpaa train data --out run --resume --set layers=3",
        "run holds a finished run",
    ),
    Mistake(
        "a finished run is trained further by nothing",
        "dpaa train data --out run --resume --set epochs=1 --set patience=3",
        ("run has been trained for 1 epochs already", "set epochs above 1"),
    ),
    Mistake(
        "a place to log to that does not exist",
        "dpaa train data --out new --log-to paper",
        ("there is no tracker 'paper'", "mlflow or wandb"),
    ),
    Mistake(
        "a warm start from nothing", "dpaa train data --out new --warm-start nowhere", "there is no run folder nowhere"
    ),
    Mistake(
        "a warm start from a run without vectors",
        "dpaa train untested --method lightgcn --out new --warm-start untested-run",
        ("untested-run is a run of most-popular", "no trained vectors to start from"),
    ),
    Mistake(
        "a warm start of another width",
        "dpaa train data --out new --warm-start run --set embedding_size=8",
        ("run has vectors of 4 columns", "set embedding_size=4"),
    ),
    Mistake("something else is there", "dpaa train data --out diary", "diary holds something else than a run"),
    Mistake(
        "something else is there, to be overwritten",
        "dpaa train data --out diary --overwrite",
        "diary holds something else than a run",
    ),
    Mistake("a file is there", "dpaa train data --out log.csv", "log.csv holds something else than a run"),
    Mistake("the run would lie under a file", "dpaa train data --out log.csv/run", "cannot write log.csv/run"),
    Mistake(
        "a wrong setting does not cost the run that is there",
        "dpaa train data --set layers=-1 --out run --overwrite",
        "hyperparameter layers",
    ),
    Mistake(
        "a checkpoint that cannot be read",
        "dpaa train data --out unfinished --resume",
        "state.safetensors is not a readable checkpoint",
        spoil=spoil_unfinished_checkpoint,
    ),
]

RUNS = [
    Mistake("a run that is not there", "dpaa recommend nowhere", "there is no run folder nowhere"),
    Mistake("a folder that is no run", "dpaa recommend diary", "diary is not a run folder (it has no manifest.json)"),
    Mistake("a file instead of a run", "dpaa recommend log.csv", "there is no run folder log.csv"),
    Mistake("a dataset instead of a run", "dpaa evaluate data", "data is not a run folder"),
    Mistake("an unfinished run", "dpaa evaluate unfinished", ("unfinished is an unfinished run", "--resume")),
    run("a run without its settings", lambda: Path("run/config.json").unlink(), "no config.json"),
    run(
        "a run without its tensors",
        lambda: Path("run/model.safetensors").unlink(),
        "there is no file run/model.safetensors",
    ),
    run("a run without its users", lambda: Path("run/users.parquet").unlink(), "there is no file run/users.parquet"),
    run("tensors that break off", lambda: cut(Path("run/model.safetensors")), "model.safetensors is not readable"),
    run("tensors that are text", replace("model.safetensors", "hello"), "model.safetensors is not readable"),
    run("a table that breaks off", lambda: cut(Path("run/edges.parquet")), "edges.parquet is not readable"),
    run("a table that is text", replace("items.parquet", "a,b\n"), "run/items.parquet is not readable"),
    run(
        "a table with a column missing",
        lambda: drop_column(Path("run/edges.parquet"), "user_id"),
        "run/edges.parquet lacks the column 'user_id'",
    ),
    run(
        "a table with decimal ids",
        table("users.parquet", pl.col("count").cast(pl.Float64).alias("user_id")),
        "run/users.parquet",
        "Float64",
    ),
    run(
        "a table with empty ids",
        table("items.parquet", pl.lit(None, pl.String).alias("item_id")),
        "run/items.parquet",
        "empty",
    ),
    run(
        "a table with repeated ids",
        table("users.parquet", pl.lit("u1").alias("user_id")),
        "run/users.parquet",
        "ascending",
    ),
    run("a table out of order", reverse_users, "run/users.parquet", "ascending"),
    run(
        "edges of users that are not in the run",
        table("edges.parquet", pl.lit("bob").alias("user_id")),
        "run/edges.parquet",
        "'bob'",
    ),
    run("edges with ids of another type", table("edges.parquet", pl.lit(3).alias("item_id")), "run/edges.parquet"),
    run(
        "edges with counts that are text",
        table("edges.parquet", pl.lit("x").alias("count")),
        "run/edges.parquet",
        "'count'",
    ),
    run(
        "edges with negative counts", table("edges.parquet", pl.lit(-1).alias("count")), "run/edges.parquet", "'count'"
    ),
    run(
        "candidates that are no truth values",
        table("items.parquet", pl.lit(3).alias("candidate")),
        "run/items.parquet",
        "'candidate'",
    ),
    run("a run of fewer users", fewer_users, "run/"),
    run(
        "tensors of another shape",
        tensor("user_embedding", lambda t: t[:, :2].contiguous()),
        "'user_embedding' must be F32",
    ),
    run("tensors of another type", tensor("item_embedding", half), "'item_embedding' must be F32"),
    run(
        "tensors with values that are no numbers",
        tensor("item_embedding", lambda t: t * torch.nan),
        "run/model.safetensors",
        "'item_embedding'",
    ),
    run("settings of another shape", change("config.json", embedding_size=9), "tensor 'user_ego' must be"),
    run(
        "settings edited into nonsense",
        change("config.json", layers="many"),
        "hyperparameter layers",
        "run/config.json",
    ),
    run("settings that do not exist", change("config.json", layer=2), "no hyperparameter 'layer'", "run/config.json"),
    run("a method edited into nonsense", change("config.json", method="xyzzy"), "no method 'xyzzy'", "run/config.json"),
    run("settings that break off", replace("config.json", '{"method": "light'), "run/config.json is not readable"),
    run("settings that are no object", replace("config.json", "[]"), "run/config.json does not hold a JSON object"),
    run(
        "a manifest of another format",
        change("manifest.json", format=99),
        "run has run format 99, this version reads 1",
    ),
    run("a manifest that breaks off", replace("manifest.json", '{"format": 1,'), "run/manifest.json is not readable"),
    run("a manifest that is not UTF-8", replace("manifest.json", b'{"\xff": 1}'), "run/manifest.json is not readable"),
    run("a manifest nested without end", replace("manifest.json", "[" * 100_000), "run/manifest.json is not readable"),
    run("a manifest whose dataset is no object", change("manifest.json", dataset=[]), "run/manifest.json", "dataset"),
]

EVALUATE = [
    Mistake("lists of length 0", "dpaa evaluate run --k 0", ("'--k'", "greater than or equal to 1", "'0'")),
    Mistake("lists longer than the catalogue", "dpaa evaluate run --k 1000000", ("1,000,000 items", "smaller k")),
    Mistake("lists of no length", "dpaa evaluate run --k ten", ("'--k'", "'ten'")),
    Mistake(
        "an overlap convention that does not exist",
        "dpaa evaluate run --overlap ignore",
        ("one of drop, mask, keep", "'ignore'"),
    ),
    Mistake("no test pairs", "dpaa evaluate untested-run", ("dataset log: no test pair is left", "0 in the split")),
    Mistake(
        "a dataset that has moved",
        "dpaa evaluate run",
        ("no longer at", "--dataset"),
        spoil=change("manifest.json", dataset={"name": "demo", "fingerprint": "y", "path": "/gone/data"}),
    ),
    Mistake(
        "another dataset than that of the run",
        "dpaa evaluate run --dataset numbers",
        ("run was trained on another dataset than numbers", "0% of its training pairs"),
    ),
    Mistake(
        "a check that cannot be read",
        "dpaa evaluate run --fail-if ndcg@20<0.98*",
        ("is not NAME OP NUMBER or NAME OP NUMBER * RUN", "such as"),
    ),
    Mistake(
        "a check against a run that is not there",
        'dpaa evaluate run --fail-if "ndcg@20 < 0.98 * nowhere"',
        "there is no file nowhere; check the path",
    ),
    Mistake("a check of an unknown metric", "dpaa evaluate run --fail-if ndgc<1", "no metric 'ndgc'; choose from"),
    Mistake(
        "a final fit with options of its own",
        "dpaa train data --final run --set layers=1 --out made",
        "--final takes everything from the run that it names",
    ),
    Mistake(
        "a final fit on another dataset",
        "dpaa train numbers --final run --out made",
        "name the dataset that the run was trained on",
    ),
    Mistake(
        "a dataset changed since the training",
        "dpaa evaluate run --dataset data",
        "data was changed",
        spoil=lambda: Path("data/test.parquet").write_bytes(Path("data/valid.parquet").read_bytes()),
    ),
    Mistake(
        "a dataset to evaluate on that is none", "dpaa evaluate run --dataset diary", "diary is not a prepared dataset"
    ),
    Mistake(
        "a run whose dataset is in no text",
        "dpaa evaluate run",
        "run/manifest.json",
        spoil=change("manifest.json", dataset={"path": 7}),
    ),
]

HISTORY = "user_id,item_id\nnew,i0001\n"


def recommend(kind: str, options: str, *says: str, **files: str) -> Mistake:
    return Mistake(kind, f"dpaa recommend run {options}", says, {f"{name}.csv": text for name, text in files.items()})


RECOMMEND = [
    recommend("a limit without a number", "--at-most genre", "--at-most takes COLUMN=N", "'genre'"),
    recommend("a limit of 0", "--at-least genre=0", "--at-least takes COLUMN=N with N from 1", "'genre=0'"),
    recommend("a limit by a column nobody gave", "--at-most genre=3", "the items have no columns", "--items"),
    recommend("a value without its column", "--only drama", "--only takes COLUMN=VALUE", "'drama'"),
    recommend("pairs to exclude that are not there", "--exclude-pairs new.csv", "there is no file new.csv"),
    recommend(
        "pairs to exclude without items", "--exclude-pairs new.csv", "new.csv has no column", new="user_id\nu0001\n"
    ),
    Mistake(
        "pairs to exclude with ids of another type",
        "dpaa recommend run --exclude-pairs new.parquet",
        ("new.parquet has item_ids that are integers such as 7", "text such as 'i0001'"),
        spoil=lambda: pl.DataFrame({"user_id": ["new"], "item_id": [7]}).write_parquet("new.parquet"),
    ),
    Mistake(
        "text where the model's ids are integers",
        "dpaa recommend numbers-run --users bob",
        ("user ids are integers", "'bob'"),
    ),
    Mistake("a decimal where the model's ids are integers", "dpaa recommend numbers-run --items 1.5", "'1.5'"),
    Mistake(
        "an integer too large for the model's ids",
        "dpaa recommend numbers-run --users 99999999999999999999",
        "99999999999999999999",
    ),
    recommend("nothing left to recommend", "--items i0001 --exclude i0001", "no item is left to recommend"),
    recommend("lists of length 0 to recommend", "--k 0", "'--k'", "'0'"),
    recommend("a file of ids that is not there", "--users @who.txt", "there is no file who.txt"),
    recommend("a folder as file of ids", "--users @diary", "diary is a folder; name a file in it"),
    recommend("an empty file of ids", "--users @who.csv", "who.csv is empty", who="\n"),
    Mistake(
        "a file of ids that is not UTF-8",
        "dpaa recommend run --users @who.txt",
        ("who.txt", "UTF-8"),
        {"who.txt": b"\xff\xfe\n"},
    ),
    recommend("a history that is not there", "--history new.csv", "there is no file new.csv"),
    recommend("a history without items", "--history new.csv", "new.csv has no column", new="user_id\nnew\n"),
    recommend("a history with an empty user", "--history new.csv", "first line 3", new=HISTORY + ",i0002\n"),
    Mistake(
        "a history with ids of another type",
        "dpaa recommend run --history new.parquet",
        ("new.parquet has item_ids that are integers such as 7", "text such as 'i0001'"),
        spoil=lambda: pl.DataFrame({"user_id": ["new"], "item_id": [7]}).write_parquet("new.parquet"),
    ),
    recommend(
        "an ending that tells no format to write", "--out recs.xlsx", "'.xlsx'", ".parquet or .csv or .tsv or .jsonl"
    ),
    recommend("no ending", "--out recs", "recs has no ending", ".parquet or .csv or .tsv or .jsonl"),
    recommend("a file of recommendations that is there", "--out log.csv", "log.csv already exists; pass --overwrite"),
    recommend("a folder for the file that is not there", "--out no/recs.csv", "there is no folder no"),
    Mistake(
        "a folder in place of the file",
        "dpaa recommend run --out lists.csv",
        "lists.csv is a folder",
        spoil=lambda: Path("lists.csv").mkdir(),
    ),
    Mistake(
        "a place where nobody may write",
        "dpaa recommend run --out /proc/recs.csv",
        "cannot write /proc/recs.csv",
        progress=True,
    ),
]

CALLS = [
    Mistake(
        "a command that does not exist", "dpaa trian", ("no such command 'trian'", "did you mean 'train', 'trace'?")
    ),
    Mistake("a source that does not exist", "dpaa data movielens", ("'movielens'", "see dpaa data --help")),
    Mistake(
        "an option that does not exist",
        "dpaa train data --epochs 3 --out made",
        ("no such option: --epochs", "--set NAME=VALUE", "see dpaa train --help"),
    ),
    Mistake("an option without its value", "dpaa train data --out", "'--out' requires an argument"),
    Mistake("an argument too many", "dpaa evaluate run again", ("again", "see dpaa evaluate --help")),
    Mistake("an argument missing", "dpaa recommend", ("missing argument", "see dpaa recommend --help")),
    Mistake("an option that takes no value", "dpaa evaluate run --json=yes", "--json"),
    Mistake("a method to show that does not exist", "dpaa methods lightgnc", ("'lightgnc'", "did you mean lightgcn?")),
]

SECTIONS = {
    "Methods and settings": METHODS,
    "Configuration files": CONFIGS,
    "Pre-trained vectors": PRETRAINED,
    "Where a run is written": PLACES,
    "Runs": RUNS,
    "Evaluation": EVALUATE,
    "Recommendation": RECOMMEND,
    "Calls": CALLS,
}
