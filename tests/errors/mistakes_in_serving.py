"""A service: what it cannot be started with."""

from __future__ import annotations

from tests.errors.mistake import Mistake

TOKEN = {"token": "0123456789abcdef0123456789abcdef\n"}
SECTIONS = {
    "Services": [
        Mistake("a service of a run that is not there", "dpaa serve gone --port 0", ("there is no run folder", "gone")),
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
            "an address that is not this machine's",
            "dpaa serve run --host 192.0.2.1 --token-file token",
            ("cannot listen on 192.0.2.1 port 8000", "--port"),
            TOKEN,
        ),
    ]
}
