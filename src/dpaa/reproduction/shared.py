"""Trainings that several machines share through a PostgreSQL server: who is at one, and what came out.

A claim is an advisory lock, which ends with its process however that ends; a result is a row, written once its training
is done.  Every machine keeps the results in files of its own as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from dpaa.reproduction.results import ResultStore, S

TABLE = "dpaa_results"


class SharedResults:
    """A session with the server."""

    def __init__(self, url: str) -> None:
        from dpaa.tuning.locks import server_locks  # Optuna and psycopg are extras

        self._locks = server_locks(url, "reproduce")
        with self._locks.opening():  # one at a time: two first calls would both make the table
            self._locks.execute(
                f"CREATE TABLE IF NOT EXISTS {TABLE} (kind text, key text, json text NOT NULL, PRIMARY KEY (kind, key))"
            )

    @contextmanager
    def claimed(self, key: str) -> Iterator[bool]:
        """Whether this process may do it: nobody else is at it meanwhile."""
        with self._locks.claimed(key) as mine:
            yield mine

    def free(self, names: Sequence[str]) -> list[str]:
        """Which of these nobody is at just now."""
        found = []
        for name in names:
            with self.claimed(name) as mine:
                found += [name] if mine else []
        return found

    def agree(self, store: ResultStore[S], keys: Sequence[str], kept: Callable[[str], bool]) -> None:
        """Hand over what is kept here and not there, keep here what is there."""
        rows = self._locks.execute(
            f"SELECT key FROM {TABLE} WHERE kind = %s AND key = ANY(%s)", [store.kind, list(keys)]
        )
        there = {key for (key,) in rows}
        for key in keys:
            if not kept(key) and key in there:
                self._fetch(store, key)
            elif kept(key) and key not in there:
                self.add(store, key)

    def _fetch(self, store: ResultStore[S], key: str) -> None:
        rows = self._locks.execute(f"SELECT json FROM {TABLE} WHERE kind = %s AND key = %s", [store.kind, key])
        for (text,) in rows:
            place = f"row {key} of the storage's table {TABLE}"
            store.write(key, store.parse(text, place, "remove it to have it made again"))

    def add(self, store: ResultStore[S], key: str) -> None:
        """Hand over what was written here."""
        found = store.read(key)
        assert found is not None
        self._locks.execute(
            f"INSERT INTO {TABLE} VALUES (%s, %s, %s) ON CONFLICT (kind, key) DO UPDATE SET json = excluded.json",
            [store.kind, key, found.model_dump_json(exclude_unset=True)],
        )

    def close(self) -> None:
        """End the session."""
        self._locks.close()


@contextmanager
def opened(storage: str) -> Iterator[SharedResults]:
    """A session that ends."""
    with closing(SharedResults(storage)) as shared:
        yield shared
