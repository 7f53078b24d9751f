"""What all mutations have in common: bytes that are changed, cut and doubled, and texts that nobody expects."""

from __future__ import annotations

import random
from collections.abc import Callable

Spoil = Callable[[bytes, random.Random], bytes]
"""Takes the bytes of a valid file and a source of randomness; gives other bytes."""

DEEP = 100_000
"""Levels of nesting: more than any parser that calls itself can bear."""
LONG = 20_000_000
"""Characters of a line that is too long."""
HUGE = 4_000_000_000
"""Bytes of a file that should not be read as a whole."""
ODD_TEXTS = ("", " ", "\x1b[31mred\x1b[0m", "\x9b31mred", "[/bold][/]", "[link=file:///etc/passwd]x[/link]", "[/]",
             "../../outside/new", "/etc/passwd", "~", "a\nb", "a\rb", "a\0b", "<script>alert(1)</script>", "%s{0}{x}",
             "\u202egnp.exe", "é" * 50, "NaN", "1e400", "-1", "nan", "x" * 5_000)  # fmt: skip


def flip(content: bytes, rng: random.Random) -> bytes:
    """A few bytes changed."""
    out = bytearray(content or b"\0")
    for _ in range(rng.randint(1, 4)):
        out[rng.randrange(len(out))] ^= rng.randint(1, 255)
    return bytes(out)


def cut(content: bytes, rng: random.Random) -> bytes:
    """A piece is missing."""
    start, end = _piece(content, rng)
    return content[:start] + content[end:]


def truncate(content: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return content[: rng.randrange(max(len(content), 1))]


def insert(content: bytes, rng: random.Random) -> bytes:
    """Something was put in."""
    start, _ = _piece(content, rng)
    return content[:start] + rng.randbytes(rng.randint(1, 40)) + content[start:]


def double(content: bytes, rng: random.Random) -> bytes:
    """A piece stands there twice."""
    start, end = _piece(content, rng)
    return content[:end] + content[start:end] + content[end:]


def blank(content: bytes, rng: random.Random) -> bytes:
    """A piece became zeros, as after a crash."""
    start, end = _piece(content, rng)
    return content[:start] + bytes(end - start) + content[end:]


def swap_pieces(content: bytes, rng: random.Random) -> bytes:
    """Two pieces changed places."""
    a, b = sorted(_piece(content, rng))[0], sorted(_piece(content, rng))[1]
    a, b = min(a, b), max(a, b)
    middle = (a + b) // 2
    return content[:a] + content[middle:b] + content[a:middle] + content[b:]


def noise(content: bytes, rng: random.Random) -> bytes:
    """Nothing but noise."""
    return rng.randbytes(rng.randint(1, max(2, len(content))))


def nothing(content: bytes, rng: random.Random) -> bytes:
    """An empty file."""
    del content, rng
    return b""


def twice(content: bytes, rng: random.Random) -> bytes:
    """The whole file once more."""
    del rng
    return content + content


def _piece(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(max(len(content), 1))
    return start, min(len(content), start + rng.choice((1, 4, 16, 64, 400)))


BYTES: dict[str, Spoil] = {
    one.__name__: one for one in (flip, cut, truncate, insert, double, blank, swap_pieces, noise, nothing, twice)
}
