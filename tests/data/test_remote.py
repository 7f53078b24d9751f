"""Tables behind URLs: polars' own client of S3, against a server in this process that answers as S3 does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import polars as pl
import pytest

from dpaa.data.inputs import name_of, open_log
from dpaa.data.log import read_log
from dpaa.data.tables import TextForm
from dpaa.errors import InputError


class Bucket(BaseHTTPRequestHandler):
    """GET and HEAD of objects, whole or in ranges."""

    objects: ClassVar[dict[str, bytes]] = {}

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        content = self.objects.get(unquote(urlsplit(self.path).path))
        if content is None:
            self.send_error(404)
            return
        asked = self.headers.get("Range")
        first, last = 0, len(content) - 1
        if asked is not None:
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            first = int(begin) if begin else max(len(content) - int(end), 0)
            last = min(int(end), last) if begin and end else last
        part = content[first : last + 1]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        if body:
            self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """What is in `s3://shop/`, by path."""
    handler = type("Shop", (Bucket,), {"objects": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    settings = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "anybody",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_REGION": "eu-north-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    yield handler.objects  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_tables_in_a_bucket(bucket: dict[str, bytes], tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"], "rating": [4.0, 5.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    bucket["/shop/clicks.parquet"] = (tmp_path / "a.parquet").read_bytes()
    bucket["/shop/clicks.csv"] = frame.write_csv().encode()
    bucket["/shop/clicks.jsonl"] = frame.write_ndjson().encode()
    bucket["/shop/bare.tsv"] = b"1\ta\n2\tb\n"
    for name in ("clicks.parquet", "clicks.csv", "clicks.jsonl"):
        assert read_log(open_log([f"s3://shop/{name}"])).frame.equals(frame), name
    both = open_log(["s3://shop/clicks.parquet", "s3://shop/clicks.jsonl"])
    assert read_log(both).frame.height == 4
    bare = open_log(["s3://shop/bare.tsv"], form=TextForm(columns=("user_id", "item_id")))
    assert read_log(bare).frame.rows() == [(1, "a"), (2, "b")]
    assert name_of("s3://shop/clicks.parquet") == "clicks"


def test_what_is_not_there_or_cannot_be_read(bucket: dict[str, bytes]) -> None:
    with pytest.raises(
        InputError, match=r"^s3://shop/none.parquet cannot be read .*; check the URL and the credentials"
    ):
        open_log(["s3://shop/none.parquet"])
    bucket["/shop/torn.csv"] = b"user_id,item_id\n1,a\n2\n3,b,c\n"
    with pytest.raises(InputError, match=r"^s3://shop/torn.csv cannot be read"):
        read_log(open_log(["s3://shop/torn.csv"]))


@pytest.mark.parametrize(
    ("url", "form", "sentence"),
    [
        ("s3://shop/log", {}, "the ending of s3://shop/log does not tell its format; pass --format"),
        ("s3://shop/log.inter", {}, "is of format inter; from URLs come parquet, jsonl, csv, tsv"),
        ("s3://shop/log.csv", {"encoding": "latin-1"}, "leave --encoding out"),
        ("s3://shop/log.csv", {"separator": "::"}, "polars cannot cut s3://shop/log.csv at '::'"),
        ("https://me:s3cr@et@x/log.csv", {}, "can be read in two ways"),
    ],
)
def test_wrong_urls(url: str, form: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        open_log([url], form=TextForm(**form))
    assert "s3cr@" not in str(refused.value)
