"""Parquet files that lie: numbers changed in the footer, and files forged so that a few bytes stand for gigabytes.

The footer is a Thrift structure in the compact protocol; what is needed of it is written down here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = b"PAR1"
INT64, BYTE_ARRAY = 2, 6
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
UNCOMPRESSED, ZSTD = 0, 6
ZSTD_BLOCK = 128 * 1024
LIES = (0, 1, -1, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**62))


# ---------------------------------------------------------------------- numbers in a footer


def change_a_number(content: bytes, rng: random.Random) -> bytes:
    """A file whose footer has one number, any one, replaced by a lie."""
    start, end = _footer(content)
    spans = list(_numbers(content[start:end]))
    if not spans:
        return content[:-1]
    first, last, value = rng.choice(spans)
    lie = rng.choice([lie for lie in (*LIES, value + 1, value - 1, 2 * value) if lie != value])
    footer = content[start : start + first] + _varint(_zigzag(lie)) + content[start + last : end]
    return content[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC


def _footer(content: bytes) -> tuple[int, int]:
    end = len(content) - 8
    return end - int.from_bytes(content[end : end + 4], "little"), end


def _numbers(footer: bytes) -> Iterator[tuple[int, int, int]]:
    """Start, end and value of every integer of a Thrift structure."""
    yield from _Reader(footer).structure()


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def structure(self) -> Iterator[tuple[int, int, int]]:
        while header := self.byte():
            if header >> 4 == 0:
                self.varint()
            yield from self.value(header & 0x0F)

    def value(self, kind: int, listed: bool = False) -> Iterator[tuple[int, int, int]]:
        if kind in (1, 2):
            self.at += listed
        elif kind == 3:
            self.at += 1
        elif kind in (4, 5, 6):
            start, raw = self.at, self.varint()
            yield start, self.at, (raw >> 1) ^ -(raw & 1)
        elif kind == 7:
            self.at += 8
        elif kind == 8:
            length = self.varint()
            self.at += length
        elif kind in (9, 10):
            header = self.byte()
            for _ in range(self.varint() if header >> 4 == 15 else header >> 4):
                yield from self.value(header & 0x0F, listed=True)
        elif kind == 12:
            yield from self.structure()


# ---------------------------------------------------------------------- whole files


@dataclass(frozen=True)
class Column:
    """A column of which every row has the same value."""

    name: str
    value: bytes | int
    """Text, or a whole number."""
    repeat: int = 1
    """How often the text is repeated to make the value: as one run of the compressor."""


def forge(columns: Sequence[Column], n_rows: int, claimed_rows: int | None = None) -> bytes:
    """A file of equal rows, each column one run; `claimed_rows` is what the footer says."""
    content, chunks = bytearray(MAGIC), []
    for column in columns:
        start = len(content)
        kind = INT64 if isinstance(column.value, int) else BYTE_ARRAY
        plain, packed = _value(column)
        first = _page(2, plain, len(packed), _structure({7: _structure({1: _i32(1), 2: _i32(PLAIN)})}))
        content += first + packed
        data = bytes([1]) + _varint(n_rows << 1) + b"\0"  # one bit wide; one run of index 0
        body = _compressed(data) if column.repeat > 1 else data
        about = _structure({1: _i32(n_rows), 2: _i32(RLE_DICTIONARY), 3: _i32(RLE), 4: _i32(RLE)})
        second = len(content)
        content += _page(0, len(data), len(body), _structure({5: about})) + body
        sizes = len(first) + plain + len(content) - second
        codec = ZSTD if column.repeat > 1 else UNCOMPRESSED
        meta = {
            1: _i32(kind), 2: _list(5, [_zig(PLAIN), _zig(RLE), _zig(RLE_DICTIONARY)]),
            3: _list(8, [_binary(column.name.encode())]), 4: _i32(codec), 5: _i64(n_rows), 6: _i64(sizes),
            7: _i64(len(content) - start), 9: _i64(second), 11: _i64(start),
        }  # fmt: skip
        chunks.append(_body(_structure({2: _i64(start), 3: _structure(meta)})))
    claimed = n_rows if claimed_rows is None else claimed_rows
    schema = [_body(_structure({4: (8, _binary(b"root")), 5: _i32(len(columns))}))]
    for column in columns:
        kind = {1: _i32(INT64)} if isinstance(column.value, int) else {1: _i32(BYTE_ARRAY), 6: _i32(0)}
        named = {3: _i32(0), 4: (8, _binary(column.name.encode()))}
        schema.append(_body(_structure(dict(sorted((kind | named).items())))))
    group = _body(_structure({1: _list(12, chunks), 2: _i64(len(content)), 3: _i64(claimed)}))
    footer = _body(
        _structure({1: _i32(1), 2: _list(12, schema), 3: _i64(claimed), 4: _list(12, [group])}),
    )
    return bytes(content) + footer + len(footer).to_bytes(4, "little") + MAGIC


def _value(column: Column) -> tuple[int, bytes]:
    """The one entry of a dictionary page: its size in full, and its bytes in the file."""
    if isinstance(column.value, int):
        return 8, column.value.to_bytes(8, "little", signed=True)
    length = len(column.value) * column.repeat
    head = length.to_bytes(4, "little")
    if column.repeat == 1:
        return 4 + length, head + column.value
    return 4 + length, _compressed(head, column.value[:1], length)


def _compressed(head: bytes, repeated: bytes = b"", times: int = 0) -> bytes:
    """A Zstandard frame: `head` as it is, then one byte over and over, 128 KB in every four bytes of the frame."""
    blocks = [(0, len(head), head)]
    while times:
        size = min(times, ZSTD_BLOCK)
        blocks.append((1, size, repeated))
        times -= size
    frame = bytearray(b"\x28\xb5\x2f\xfd\xc0\x38")  # size of the content in 8 bytes; a window of 128 KB
    frame += sum(size for _, size, _ in blocks).to_bytes(8, "little")
    for place, (kind, size, content) in enumerate(blocks):
        frame += (size << 3 | kind << 1 | (place == len(blocks) - 1)).to_bytes(3, "little") + content
    return bytes(frame)


def _page(kind: int, plain: int, packed: int, about: tuple[int, bytes]) -> bytes:
    numbers = _structure({1: _i32(kind), 2: _i32(plain), 3: _i32(packed)})[1][:-1]
    field, rest = about[1][0] >> 4, about[1]
    return numbers + bytes([(field - 3) << 4 | rest[0] & 0x0F]) + rest[1:]


# ---------------------------------------------------------------------- Thrift, written


def _structure(fields: dict[int, tuple[int, bytes]]) -> tuple[int, bytes]:
    out, last = bytearray(), 0
    for number, (kind, content) in fields.items():
        out += bytes([(number - last) << 4 | kind]) + content
        last = number
    return 12, bytes(out) + b"\0"


def _body(value: tuple[int, bytes]) -> bytes:
    return value[1]


def _i32(value: int) -> tuple[int, bytes]:
    return 5, _zig(value)


def _i64(value: int) -> tuple[int, bytes]:
    return 6, _zig(value)


def _binary(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _list(kind: int, values: Sequence[bytes]) -> tuple[int, bytes]:
    head = bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + _varint(len(values))
    return 9, head + b"".join(values)


def _zig(value: int) -> bytes:
    return _varint(_zigzag(value))


def _zigzag(value: int) -> int:
    return ((value << 1) ^ (value >> 63)) & (2**64 - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
