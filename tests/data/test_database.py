"""The rows of a query: from a real PostgreSQL server, DuckDB and SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest

from dpaa.data.database import query_table
from dpaa.data.dataset import read_dataset
from dpaa.data.log import Reading, read_log
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa
from tests.postgres import Postgres, running

ROWS = [(f"u{user}", item, 1 + (user + item) % 5) for user in range(9) for item in range(user, user + 6)]
PASSWORD = "s3cret/@ word"
QUERY = "SELECT who AS user_id, what AS item_id, stars AS rating FROM clicks ORDER BY id"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server with two tables, and a user who needs a password."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running() as found:
        values = ", ".join(f"('{user}', {item}, {stars})" for user, item, stars in ROWS)
        found.psql(
            "-c",
            "CREATE TABLE clicks (id serial, who text, what bigint, stars numeric(3, 1), "
            "at timestamptz DEFAULT now(), event uuid DEFAULT gen_random_uuid());"
            f"INSERT INTO clicks (who, what, stars) VALUES {values};"
            "CREATE TABLE films (id bigint, title text, genre text);"
            "INSERT INTO films SELECT g, 'Film ' || g, 'Drama' FROM generate_series(0, 9) g;"
            f"CREATE ROLE dpaa LOGIN PASSWORD '{PASSWORD}'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO dpaa;"
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO dpaa;",
        )
        rules = found.socket / "data" / "pg_hba.conf"
        rules.write_text("local all dpaa scram-sha-256\n" + rules.read_text())
        found.psql("-c", "SELECT pg_reload_conf()")
        yield found


def url_of(server: Postgres, password: str = PASSWORD, database: str = "postgres") -> str:
    return f"postgresql://dpaa:{quote(password, safe='')}@/{database}?host={server.socket}"


@pytest.mark.slow
def test_a_query_to_postgresql(server: Postgres) -> None:
    log = read_log(query_table(url_of(server), QUERY))
    assert log.frame.rows() == [(user, item, float(stars)) for user, item, stars in ROWS]
    timed = read_log(
        query_table(url_of(server), "SELECT event AS item, who AS user, at AS time FROM clicks"),
        reading=Reading(times_needed=True),
    )
    assert timed.frame["item_id"].dtype == pl.String
    assert timed.frame["timestamp"].dtype == pl.Datetime("us", "UTC")


@pytest.mark.slow
def test_a_dataset_from_postgresql_keeps_no_secret(server: Postgres, tmp_path: Path) -> None:
    films = "SELECT id AS item_id, title, genre FROM films"
    said = dpaa_ok("data", "sql", url_of(server), "--query", QUERY, "--items-query", films, "--out", tmp_path / "shop")
    data = read_dataset(tmp_path / "shop")
    assert data.n_interactions == len(ROWS)
    assert data.titles is not None
    assert data.titles[3] == "Film 3"
    assert data.about["source"] == f"the query to postgresql://dpaa:***@/postgres?host=*** ({QUERY})"
    kept = "".join(file.read_text(errors="replace") for file in (tmp_path / "shop").iterdir())
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "s3cret"):
        assert secret not in kept + said.out + said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "query", "words"),
    [
        ({"password": "wr0ng"}, QUERY, "password authentication failed"),
        ({"database": "nowhere"}, QUERY, 'database "nowhere" does not exist'),
        ({}, "SELECT nothing FROM clicks", 'column "nothing" does not exist'),
        ({}, "DELETE FROM clicks", "syntax error"),
        ({}, "COPY clicks TO PROGRAM 'cat'", "syntax error"),
        ({}, "SELECT 1; COMMIT; DELETE FROM clicks", "cannot insert multiple commands"),
        ({}, "SELECT nextval('clicks_id_seq')", "cannot execute nextval() in a read-only transaction"),
        ({}, "SELECT who AS a, what AS a FROM clicks", "gives two columns of one name"),
        ({}, "SELECT set_config('transaction_read_only', 'off', false) FROM clicks", "must be set before any query"),
        ({}, "SELECT who AS user_id FROM clicks", "has no column that is known as item_id"),
        (
            {},
            "SELECT who AS user_id, NULLIF(what, 0) AS item_id FROM clicks ORDER BY id",
            "column 'item_id' is empty in row 1 of the query",
        ),
    ],
)
def test_what_goes_wrong_with_postgresql(
    server: Postgres, changed: dict[str, str], query: str, words: str, tmp_path: Path
) -> None:
    url = url_of(server, **changed)
    said = run_dpaa("data", "sql", url, "--query", query, "--out", tmp_path / "data")
    assert said.code == 2
    assert words in said.err
    assert not any(secret in said.err for secret in (PASSWORD, quote(PASSWORD, safe=""), "wr0ng", "s3cret"))
    assert not (tmp_path / "data").exists()


def test_nobody_answers(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(InputError, match=r"the query to postgresql://me:\*\*\*@127.0.0.1:1/x failed") as refused:
        query_table("postgresql://me:s3cret@127.0.0.1:1/x", QUERY)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_query_to_a_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make = "CREATE TABLE clicks (id INTEGER, who VARCHAR, what BIGINT, stars DOUBLE)"
    rows = [(number, *row) for number, row in enumerate(ROWS)]
    if kind == "sqlite":
        with sqlite3.connect("a b.db") as database:
            database.execute(make)
            database.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?)", rows)
        database.close()
    else:
        duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
        with duckdb.connect("a b.db") as database:
            database.execute(make)
            database.executemany("INSERT INTO clicks VALUES (?, ?, ?, ?)", rows)
    for url in (f"{kind}:///a%20b.db", f"{kind}:///{tmp_path}/a b.db"):
        assert read_log(query_table(url, QUERY)).frame.rows() == [
            (user, item, float(stars)) for user, item, stars in ROWS
        ]
    with pytest.raises(InputError, match=f"the query to {kind}:///a b.db failed"):
        query_table(f"{kind}:///a b.db", "DROP TABLE clicks")
    with pytest.raises(InputError, match=f"the query to {kind}:///a b.db failed"):
        query_table(f"{kind}:///a b.db", "SELECT nothing FROM nowhere")
    with pytest.raises(InputError, match=r"there is no file none.db"):
        query_table(f"{kind}:///none.db", QUERY)
    assert [file.name for file in tmp_path.iterdir()] == ["a b.db"]
    Path("text.db").write_text("this is no database, but a text of some length\n" * 100)
    with pytest.raises(InputError, match=f"the query to {kind}:///text.db failed"):
        query_table(f"{kind}:///text.db", QUERY)


@pytest.mark.parametrize(
    ("kind", "query", "words"),
    [
        ("duckdb", "COPY clicks TO 'stolen.csv'", "only one SELECT is run, this is COPY"),
        ("duckdb", "SELECT 1; COPY clicks TO 'stolen.csv'", "only one SELECT is run, this is SELECT and COPY"),
        ("duckdb", "EXPORT DATABASE 'stolen'", "only one SELECT is run, this is EXPORT"),
        ("duckdb", "ATTACH 'stolen.db'", "only one SELECT is run, this is ATTACH"),
        ("duckdb", "-- nothing", "only one SELECT is run, this is none"),
        ("sqlite", "VACUUM INTO 'stolen.db'", "only one SELECT is run"),
        ("sqlite", "ATTACH 'stolen.db' AS other", "only one SELECT is run"),
        ("sqlite", "CREATE TEMP TABLE other AS SELECT * FROM clicks", "attempt to write a readonly database"),
    ],
)
def test_a_query_that_writes_is_not_run(
    kind: str, query: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect if kind == "sqlite" else pytest.importorskip("duckdb", reason="not installed").connect
    monkeypatch.chdir(tmp_path)
    with closing(connect("clicks.db")) as database:
        database.execute("CREATE TABLE clicks (user_id INTEGER, item_id INTEGER)")
    said = run_dpaa("data", "sql", f"{kind}:///clicks.db", "--query", query, "--out", "data")
    assert said.code == 2
    assert said.err.startswith(f"error: the query to {kind}:///clicks.db failed ({words})")
    assert [file.name for file in tmp_path.iterdir()] == ["clicks.db"]
