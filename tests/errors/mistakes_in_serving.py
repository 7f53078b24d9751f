"""A service: what it cannot be started with."""

from __future__ import annotations

from tests.errors.mistake import Mistake

TOKEN = {"token": "0123456789abcdef0123456789abcdef\n"}
SECTIONS = {
    "Services": [
        Mistake("a service of a run that is not there", "dpaa serve gone --port 0", ("there is no run folder", "gone")),
        Mistake(
            "a service with an index that does not exist",
            "dpaa serve run --index tree",
            ("there is no index 'tree'", "exact, hnsw, ivf"),
        ),
        Mistake(
            "a service for the world without a token",
            "dpaa serve run --host 0.0.0.0",
            ("a token is needed", "--token-file", "--no-token"),
        ),
        Mistake(
            "a service with a short token",
            "dpaa serve run --token-file token",
            ("shorter than 16 characters", "openssl rand"),
            {"token": "secret\n"},
        ),
        Mistake(
            "a service with an empty token",
            "dpaa serve run --token-file token",
            ("token holds no token",),
            {"token": "\n"},
        ),
        Mistake(
            "an origin with a path",
            "dpaa serve run --allow-origin https://shop.example/",
            ("https://shop.example, without a path", "'https://shop.example/'"),
        ),
        Mistake(
            "an address that is not this machine's",
            "dpaa serve run --host 192.0.2.1 --token-file token",
            ("cannot listen on 192.0.2.1 port 8000", "--port"),
            TOKEN,
        ),
        Mistake(
            "titles without a title",
            "dpaa report run --live live.html --titles titles.csv",
            ("titles.csv has no column 'title'", "item_id and title"),
            {"titles.csv": "item_id,colour\ni0001,red\n"},
        ),
        Mistake(
            "titles of other items",
            "dpaa report run --live live.html --titles titles.csv",
            ("no item of titles.csv is in the log", "use the ids of the log"),
            {"titles.csv": "item_id,title\nx,Coat\n"},
        ),
        Mistake(
            "a live page of two runs",
            "dpaa report run numbers-run --live live.html",
            ("a live page is of one run, 2 are",),
        ),
        Mistake("a live page of a dataset", "dpaa report data --live live.html", ("data is not a run folder",)),
        Mistake("a page without a name", "dpaa report run", ("missing option '--out'", "--live")),
    ]
}
