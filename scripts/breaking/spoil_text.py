"""Mutations of text: JSON, tables with separators, words, TOML."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from .spoil_bytes import DEEP, LONG, ODD_TEXTS, Spoil, flip

# ---------------------------------------------------------------------- JSON

RAW = {  # what json.dumps would not write
    "10^400": "1" + "0" * 400,
    "1e400": "1e400",
    "-10^400": "-1" + "0" * 400,
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "10^5000": "1" + "0" * 5000,
    "surrogate": '"\\ud800"',
    "half-pair": '"x\\udfffy"',
    "deep": "[" * DEEP + "]" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "long text": '"' + "x" * 1_000_000 + '"',
    "many": "[" + "0," * 300_000 + "0]",
}
VALUES = (None, True, False, 0, -1, 1, 0.5, 1e308, 2**31, 2**53, 2**63, 2**64, [], {}, [[]], [None], {"a": 1}, "text",
          "12", *ODD_TEXTS)  # fmt: skip


def json_value(content: bytes, rng: random.Random) -> bytes:
    """Another value somewhere: another type, an odd text, a number beyond all limits."""
    found = _parsed(content)
    if found is None:
        return flip(content, rng)
    mark = "\ufffdMARK\ufffd"
    if rng.random() < 0.4:
        raw = rng.choice(list(RAW.values()))
        text = json.dumps(_replaced(found, rng, mark), ensure_ascii=False)
        return text.replace(json.dumps(mark, ensure_ascii=False), raw).encode("utf-8", "surrogatepass")
    return json.dumps(_replaced(found, rng, rng.choice(VALUES)), ensure_ascii=rng.random() < 0.5).encode()


def json_missing(content: bytes, rng: random.Random) -> bytes:
    """A key or an entry is missing."""
    return _edited(content, rng, lambda parent, key: parent.pop(key))


def json_twice(content: bytes, rng: random.Random) -> bytes:
    """An entry more, or the value of another key."""

    def change(parent: Any, key: Any) -> None:
        if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(rng.choice(parent)))
        else:
            parent[key] = copy.deepcopy(rng.choice(list(parent.values())))

    return _edited(content, rng, change)


def json_number(content: bytes, rng: random.Random) -> bytes:
    """A number that is a little or very wrong."""
    found = _parsed(content)
    places = [place for place in _places(found) if _is_number(_at(place))] if found is not None else []
    if not places:
        return json_value(content, rng)
    parent, key = rng.choice(places)
    value = parent[key]
    parent[key] = rng.choice((-value, value + 1, value * 10**6, 0, -1, 2**31, 2**63, 1e300, str(value), [value]))
    return json.dumps(found).encode()


def json_top(content: bytes, rng: random.Random) -> bytes:
    """Something else than what was expected at the top."""
    text = content.decode("utf-8", "replace")
    return rng.choice(
        (
            f"[{text}]",
            "null",
            "0",
            '"text"',
            "[]",
            "{}",
            text + text,
            text + "x",
            "{" + text,
            " " * 1000 + text,
            "\ufeff" + text,
            '{"a":1,"a":2}',
            "[" * DEEP,
            text.replace("{", "{\0", 1),
        )
    ).encode()


def utf16(content: bytes, rng: random.Random) -> bytes:
    """Another encoding."""
    text = content.decode("utf-8", "replace")
    return rng.choice((text.encode("utf-16"), text.encode("utf-16-be"), text.encode("utf-32"),
                       ("é" + text).encode("latin-1", "replace")))  # fmt: skip


def json_padded(content: bytes, rng: random.Random) -> bytes:
    """Much longer than anybody would write it."""
    pad = rng.choice((b" ", b"\n", b"\t"))
    return content + pad * 60_000_000


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (parent, key) of a nested value."""
    found = []
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys:
            found.append((value, key))
            found += _places(value[key])
    return found


def _at(place: tuple[Any, Any]) -> Any:
    return place[0][place[1]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _replaced(found: Any, rng: random.Random, value: Any) -> Any:
    places = _places(found)
    if not places:
        return value
    shallow = [place for place in places if place[0] is found]
    parent, key = rng.choice(shallow if shallow and rng.random() < 0.4 else places)
    parent[key] = value
    if isinstance(parent, dict) and rng.random() < 0.1:  # the key too
        parent[rng.choice([text for text in ODD_TEXTS if text])] = parent.pop(key)
    return found


def _edited(content: bytes, rng: random.Random, change: Callable[[Any, Any], object]) -> bytes:
    found = _parsed(content)
    places = _places(found)
    if not places:
        return flip(content, rng)
    change(*rng.choice(places))
    return json.dumps(found).encode()


JSON: dict[str, Spoil] = {
    one.__name__: one for one in (json_value, json_missing, json_twice, json_number, json_top, utf16, json_padded)
}


def by_line(spoil: Spoil) -> Spoil:
    """The same for one line of a file of lines."""

    def change(content: bytes, rng: random.Random) -> bytes:
        lines = content.splitlines(keepends=True) or [b"{}\n"]
        place = rng.randrange(len(lines))
        lines[place] = spoil(lines[place].rstrip(b"\n"), rng) + b"\n"
        return b"".join(lines)

    return change


def torn(content: bytes, rng: random.Random) -> bytes:
    """The last line is not whole."""
    return content[: max(0, len(content) - rng.randint(2, 30))]


def shuffled_lines(content: bytes, rng: random.Random) -> bytes:
    """Lines in another order, one of them twice."""
    lines = content.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join([*lines, *lines[:1]])


JSONL: dict[str, Spoil] = {name: by_line(spoil) for name, spoil in JSON.items() if name != "json_padded"}
JSONL |= {"torn": torn, "shuffled_lines": shuffled_lines, "utf16": utf16, "json_padded": json_padded}


# ---------------------------------------------------------------------- tables as text


def text_table(separator: str) -> dict[str, Spoil]:
    """Mutations of CSV and its relatives."""
    sep = separator.encode()

    def changed_line(change: Callable[[bytes, random.Random], bytes]) -> Spoil:
        """One line, never the header."""

        def spoil(content: bytes, rng: random.Random) -> bytes:
            lines = content.splitlines(keepends=True)
            place = rng.randrange(1, max(2, len(lines)))
            if place >= len(lines):
                return flip(content, rng)
            lines[place] = change(lines[place].rstrip(b"\r\n"), rng) + b"\n"
            return b"".join(lines)

        return spoil

    def changed_cell(change: Callable[[bytes, random.Random], bytes]) -> Spoil:
        def spoil(line: bytes, rng: random.Random) -> bytes:
            cells = line.split(sep)
            place = rng.randrange(len(cells))
            cells[place] = change(cells[place], rng)
            return sep.join(cells)

        return changed_line(spoil)

    def header(change: Callable[[list[bytes], random.Random], list[bytes]]) -> Spoil:
        def spoil(content: bytes, rng: random.Random) -> bytes:
            first, _, rest = content.partition(b"\n")
            return sep.join(change(first.split(sep), rng)) + b"\n" + rest

        return spoil

    other = b"\t" if sep == b"," else b","
    return {
        "long_row": changed_line(lambda line, rng: line + sep + rng.choice((b"x", b"", b"1"))),
        "short_row": changed_line(lambda line, rng: sep.join(line.split(sep)[: rng.randint(1, 1 + line.count(sep))])),
        "extra_field_before": changed_line(lambda line, rng: rng.choice((b"T3", b"")) + sep + line),
        "open_quote": changed_cell(lambda cell, _: b'"' + cell),
        "quote_inside": changed_cell(lambda cell, _: cell[:1] + b'"' + cell[1:]),
        "quoted": changed_cell(lambda cell, _: b'"' + cell + sep + b"\n" + cell + b'"'),
        "nul": changed_cell(lambda cell, _: cell + b"\0"),
        "long_cell": changed_cell(lambda cell, _: cell * (LONG // max(1, len(cell)))),
        "empty_cell": changed_cell(lambda _, rng: rng.choice((b"", b" ", b'""'))),
        "odd_cell": changed_cell(lambda _, rng: rng.choice(ODD_TEXTS).encode()),
        "huge_number": changed_cell(
            lambda _, rng: rng.choice((b"1" + b"0" * 400, b"1e400", b"-1e400", b"nan", b"inf", b"9" * 30, b"1e18"))
        ),
        "odd_time": changed_cell(
            lambda _, rng: rng.choice((b"2024-13-45", b"2024-01-01", b"0000-00-00T00:00:00", b"99999-01-01", b"-5"))
        ),
        "not_utf8": changed_cell(lambda _, rng: rng.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x9b31m"))),
        "other_separator": lambda content, _: content.replace(sep, other),
        "blank_lines": lambda content, rng: content.replace(b"\n", b"\n" * rng.randint(2, 4)),
        "cr": lambda content, _: content.replace(b"\n", b"\r"),
        "crlf": lambda content, _: content.replace(b"\n", b"\r\n"),
        "bom": lambda content, _: b"\xef\xbb\xbf" + content,
        "two_boms": lambda content, _: b"\xef\xbb\xbf\xef\xbb\xbf" + content,
        "utf16": utf16,
        "header_only": lambda content, _: content.partition(b"\n")[0] + b"\n",
        "no_header": lambda content, _: content.partition(b"\n")[2],
        "no_newline": lambda content, _: content.replace(b"\n", b" "),
        "same_column_twice": header(lambda names, rng: [*names[:-1], rng.choice(names[:-1] or names)]),
        "other_columns": header(lambda names, rng: [rng.choice(ODD_TEXTS).encode() or b"x", *names[1:]]),
        "column_missing": header(lambda names, rng: names[: rng.randint(0, len(names) - 1)]),
        "many_columns": header(lambda names, _: [*names, *(b"c%d" % number for number in range(50_000))]),
        "long_header": header(lambda names, _: [*names[:-1], names[-1] * 500_000]),
        "long_line": lambda content, rng: content + b"x" * LONG + rng.choice((b"", b"\n")),
        "one_row": lambda content, _: b"\n".join(content.split(b"\n")[:2]) + b"\n",
        "repeated_rows": lambda content, _: content + content.partition(b"\n")[2] * 20,
    }


def words(separator: bytes) -> dict[str, Spoil]:
    """Mutations of text that is nothing but words: list form, matrices, one id a line."""

    def with_word(content: bytes, rng: random.Random, word: bytes) -> bytes:
        found = content.split(separator)
        found.insert(rng.randrange(len(found) + 1), word)
        return separator.join(found)

    return {
        "odd_word": lambda content, rng: with_word(content, rng, rng.choice(ODD_TEXTS).encode()),
        "not_utf8": lambda content, rng: with_word(
            content, rng, rng.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\x9b31m"))
        ),
        "long_word": lambda content, rng: with_word(content, rng, b"x" * LONG),
        "many_words": lambda content, rng: with_word(content, rng, (b"i1" + separator) * 2_000_000),
        "nul": lambda content, rng: with_word(content, rng, b"\0"),
        "huge_number": lambda content, rng: with_word(content, rng, b"1" + b"0" * rng.choice((19, 30, 400, 5000))),
        "blank_lines": lambda content, rng: content.replace(b"\n", b"\n" * rng.randint(2, 4)),
        "one_line": lambda content, _: content.replace(b"\n", b" "),
        "cr": lambda content, _: content.replace(b"\n", b"\r"),
        "tabs": lambda content, _: content.replace(b" ", b"\t"),
        "commas": lambda content, _: content.replace(b" ", b","),
        "bom": lambda content, _: b"\xef\xbb\xbf" + content,
        "utf16": utf16,
        "shuffled_lines": shuffled_lines,
    }


# ---------------------------------------------------------------------- TOML

TOML_LINES = ("layers = 1" + "0" * 400, "layers = 1e400", "learning_rate = nan", "learning_rate = -inf",
              "layers = 2024-01-01", "layers = [1, 2]", "[layers]\na = 1", "layers.a.b = 1", 'layers = "\\u001b[31m"',
              'layers = "\\ud800"', "layers = " + "[" * DEEP, "layers = " + "[" * 900 + "]" * 900, 'method = "[/bold]"',
              'method = "../../outside"', "method = 3", 'kernel = "/etc/passwd"', "epochs = -1", "epochs = 0",
              "embedding_size = 1000000000", "embedding_size = 9223372036854775807", "batch_size = 1e18", "layers",
              '"\\u009b31m" = 1', "layers = 2\nlayers = 2", "x" * 1_000_000 + " = 1", "threads = 1000000",
              "seed = -1", "seed = 9223372036854775808", "layers = 100000", 'device = "cuda:99"', "l2 = 1e308",
              "learning_rate = 1e300", "# " + "x" * 60_000_000)  # fmt: skip
TOML: dict[str, Spoil] = {
    "odd_line": lambda content, rng: content + rng.choice(TOML_LINES).encode() + b"\n",
    "odd_value": lambda content, rng: _toml_value(content, rng),
    "bom": lambda content, _: b"\xef\xbb\xbf" + content,
    "cr": lambda content, _: content.replace(b"\n", b"\r"),
    "utf16": utf16,
    "not_utf8": lambda content, _: content + b'x = "\xff\xfe"\n',
    "nul": lambda content, _: content + b"\0",
}


def _toml_value(content: bytes, rng: random.Random) -> bytes:
    """One of the settings that are there gets another value."""
    lines = content.decode().splitlines()
    place = rng.randrange(len(lines))
    name = lines[place].partition("=")[0]
    wrong = ("true", '""', "[]", "{}", "-1", "0", "0.5", "1e400", "1" + "0" * 400, "nan", "07:32:00", '"\\u001b"')
    lines[place] = f"{name}= {rng.choice(wrong)}"
    return ("\n".join(lines) + "\n").encode()
