"""Tables behind a URL (`s3://`, `gs://`, `az://`, `https://`, …): read by polars, lazily, the columns that are needed.

Credentials are polars' affair: it takes them from the environment, as every tool of a cloud does.  What is wrong with a
row is found by polars too, so its words are polars'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from dpaa._text import hide_secrets, without_secrets
from dpaa.data.parquet import panics_unseen
from dpaa.data.separators import QUOTING
from dpaa.data.table import Table
from dpaa.data.text_table import TextForm
from dpaa.errors import InputError, reason

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
REMEDY = "check the URL and the credentials in the environment"


def is_url(text: str) -> bool:
    """Whether this is a URL and no path."""
    return URL.match(text) is not None


@dataclass(frozen=True, eq=False)
class RemoteTable(Table):
    """A Parquet file, or several (`…/*.parquet`)."""

    url: str

    @classmethod
    def open(cls, url: str, fmt: str, form: TextForm) -> RemoteTable:
        """Ask for the columns."""
        kinds: dict[str, type[RemoteTable]] = {
            "parquet": cls,
            "jsonl": RemoteJson,
            "csv": RemoteText,
            "tsv": RemoteText,
        }
        if fmt not in kinds:
            raise InputError(f"{without_secrets(url)} is of format {fmt}; from URLs come {', '.join(kinds)}")
        if form.encoding is not None:
            raise InputError(f"{without_secrets(url)} is read by polars, as UTF-8; leave --encoding out")
        separator = form.separator or ("\t" if fmt == "tsv" else ",")
        return kinds[fmt]._asked(url, separator, form.columns)

    @classmethod
    def _asked(cls, url: str, separator: str, columns: tuple[str, ...] | None) -> RemoteTable:
        del separator, columns
        found = cls(without_secrets(url), (), url)
        return cls(found.name, found._names(), url)

    def _lazy(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.url)

    def _names(self) -> tuple[str, ...]:
        with self._answering():
            return tuple(self._lazy().collect_schema())

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        with self._answering():
            return self._lazy().select(columns).collect()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            with panics_unseen():
                yield
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException, ImportError) as error:
            said = hide_secrets(reason(error), self.url)
            raise InputError(f"{self.name} cannot be read ({said}); {REMEDY}") from None


@dataclass(frozen=True, eq=False)
class RemoteJson(RemoteTable):
    """JSON lines."""

    def _lazy(self) -> pl.LazyFrame:
        return pl.scan_ndjson(self.url, infer_schema_length=None)


@dataclass(frozen=True, eq=False)
class RemoteText(RemoteTable):
    """CSV or TSV."""

    separator: str = ","
    header: tuple[str, ...] | None = None
    typed: ClassVar[bool] = False

    @classmethod
    def _asked(cls, url: str, separator: str, columns: tuple[str, ...] | None) -> RemoteTable:
        if len(separator) > 1:
            raise InputError(f"polars cannot cut {without_secrets(url)} at {separator!r}; copy the file first")
        found = cls(without_secrets(url), (), url, separator, columns)
        return cls(found.name, found._names(), url, separator, columns)

    def _lazy(self) -> pl.LazyFrame:
        how: dict[str, Any] = {"separator": self.separator, "infer_schema": False, "has_header": self.header is None}
        how["quote_char"] = '"' if self.separator in QUOTING else None
        return pl.scan_csv(self.url, new_columns=None if self.header is None else list(self.header), **how)
