"""Text for terminals, HTML pages, JSON files and file names: escaped, shortened, without secrets."""

import hashlib
import json
import math
import re
import unicodedata
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from dpaa.errors import InputError

_ACTS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters: ESC begins a command to the terminal, and so does 0x9b
    "\ud800-\udfff"  # half of a pair: no encoding has it
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # turn the direction of what follows, or begin a line
    "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # take no room
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
    "\ufffe\uffff"  # no characters
)
"""What does something instead of being seen; the joiners of Persian and of emoji (U+200C, U+200D) are not among it."""
_ACTING = re.compile(f"[{_ACTS}]")
_ACTING_OR_BREAKING = re.compile(f"[{_ACTS}\t\n]")

HIDDEN = "***"
"""In place of a secret."""
LARGEST_INTEGER = 2**64
"""No id, count or time of ours is larger."""
DEEPEST = 64
"""Levels of nested JSON; files of ours have a handful."""
LONGEST_SENTENCE = 1_500
"""Characters of a sentence on the screen; an id or a value in it may have millions."""
LONGEST_NAME = 100
"""Bytes of a file's name that is made of a text, so that endings and locks find room beside it."""


def printable(text: str) -> str:
    r"""The text with an escape, such as `\x1b`, `\u202e` or `\udc80`, for every character that acts unseen.

    Newlines and tabs stay, as does everything that can be read, whatever its script.
    """
    return _ACTING.sub(_escape, text)


def on_one_line(text: str) -> str:
    r"""Escape as `printable` does, newlines and tabs too (`\n`, `\t`): for a cell or a line."""
    return _ACTING_OR_BREAKING.sub(_escape, text)


def shortened(sentence: str, most: int = LONGEST_SENTENCE) -> str:
    """Shorten a long message in the middle: the problem is at its beginning, the remedy at its end."""
    return sentence if len(sentence) <= most else f"{sentence[: most * 2 // 3]} … {sentence[-most // 3 :]}"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def json_text(content: Any, indent: int | None = 2, ascii_only: bool = False) -> str:
    r"""JSON that can be read by people and written in any encoding of Unicode; numbers that are none are null.

    Text stays as it is but for characters that act unseen, which become `\uXXXX`: `parse_json` gives them back.
    """
    text = json.dumps(finite(content), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    # Outside of its strings JSON has none of these characters, so whatever is found may be written as an escape.
    return _ACTING.sub(lambda match: json.dumps(match[0])[1:-1], text)


def finite(content: Any) -> Any:
    """Replace NaN and infinity by null, since JSON has neither."""
    if isinstance(content, dict):
        return {key: finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def parse_json(text: str | bytes) -> Any:
    """Parse the content of a JSON file; content that dpaa never writes raises a ValueError with the reason.

    That is: a key twice in one object, numbers beyond 64 bits or beyond a float, and nesting that would break whoever
    walks through it.  NaN, which others write, is null as in ours.
    """
    decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        content = json.loads(decoded, object_pairs_hook=_object, parse_constant=lambda _name: None)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    _check(content, DEEPEST)
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return content


def _check(content: Any, levels: int) -> None:
    if isinstance(content, dict | list):
        if not levels:
            raise ValueError("it is nested too deep")
        for value in content.values() if isinstance(content, dict) else content:
            _check(value, levels - 1)
    elif isinstance(content, float) and not math.isfinite(content):
        raise ValueError("it has a number that is none, or too large to compute with")
    elif isinstance(content, int) and abs(content) > LARGEST_INTEGER:
        raise ValueError("it has a whole number of more than 64 bits")


def file_name(text: str) -> str:
    """One part of a path made of any text: never a separator, hidden, `..` or too long; harmless text stays itself.

    Where something had to be replaced, a digest of the text follows, so that two texts never share a name.
    """
    kept = "".join(letter if letter in " -._" or unicodedata.category(letter)[0] in "LMN" else "_" for letter in text)
    if kept == text == text.strip(" .-") and 0 < len(kept.encode()) <= LONGEST_NAME:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    cut = kept.encode()[: LONGEST_NAME - len(f"-{digest}")].decode(errors="ignore")
    return "-".join(part for part in (cut.strip(" .-_"), digest) if part)


def name_and_values(call: str, what: str, form: str) -> tuple[str, dict[str, str]]:
    """Read `NAME,KEY=VALUE,…`; what it is and how to write it are for the message."""
    name, *words = (word.strip() for word in call.split(","))
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or key in values:
            raise InputError(f"cannot read {word!r} of {what}; write {form}")
        values[key] = value
    return name, values


def counted(number: int, one: str, many: str) -> str:
    """Write a number with its noun and verb: `1 user has`, `1,204 users have`."""
    return f"{number:,} {one if number == 1 else many}"


def four_digits(value: float) -> str:
    """`0.004`, `13.21`, `82,610`: four digits, and of a large number all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def without_secrets(url: str) -> str:
    """Remove secrets from a URL: the password, and the values of what follows `?`."""
    parts = urlsplit(url)
    # A `/` or `?` in a password would end the host, and the rest of the password be shown.
    if parts.netloc.count("@") > 1 or (":" in parts.netloc and "@" not in parts.netloc and "@" in url):
        raise InputError("the URL can be interpreted in two ways; in a password write @ as %40, / as %2F and ? as %3F")
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    shown = url.partition("?")[0].replace(parts.netloc, f"{user}{colon and f':{HIDDEN}'}{at}{host}", 1)
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return "?".join([shown, *(["&".join(f"{name}={HIDDEN}" for name in names)] if names else [])])


def hide_secrets(text: str, url: str) -> str:
    """Remove the secrets of a URL, quoted or not, from a message such as a driver's."""
    parts = urlsplit(url)
    written = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    written += [pair.partition("=")[2] for pair in parts.query.split("&")]
    text = text.replace(url, without_secrets(url))
    forms = {form for secret in written for form in (secret, unquote(secret), unquote_plus(secret))} - {""}
    for form in sorted(forms, key=len, reverse=True):  # a secret may be a part of another
        text = text.replace(form, HIDDEN)
    return text
