"""URLs that may hold a password: what is shown and kept of them has none."""

from __future__ import annotations

import re
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from dpaa.errors import InputError

HIDDEN = "***"


def without_secrets(url: str) -> str:
    """The URL that may be shown: no password, and of what follows `?` the names alone.

    It is the same for two URLs that differ in their secrets.  One that can be read in two ways (an `@` or `/` in a
    password) is refused, since a part of the password would be shown.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if host.count("@") > 1 or (":" in host and "@" not in host and "@" in rest):
        raise InputError("the URL can be read in two ways; in a password write @ as %40, / as %2F and ? as %3F")
    login, at, _ = host.rpartition("@")
    user, colon, _ = login.partition(":")
    shown = f"{user}{f':{HIDDEN}' if colon else ''}{at}{rest[len(login) + len(at) :]}"
    place, _, query = shown.partition("?")
    asked = "&".join(
        f"{name}={HIDDEN}" for name in sorted({pair.partition("=")[0] for pair in query.split("&")} - {""})
    )
    return f"{scheme}://{place}{f'?{asked}' if asked else ''}"


def hide_secrets(text: str, url: str) -> str:
    """A text, such as what a driver says, without the secrets of a URL, as they are meant and as they were written."""
    rest = url.partition("://")[2]
    written = [pair.partition("=")[2] for pair in rest.partition("?")[2].split("&")]
    if "@" in rest:
        written.append(rest.partition("@")[0].partition(":")[2])
    meant = [form for piece in written for form in (unquote(piece), unquote_plus(piece))]
    forms = {
        form
        for secret in (*written, *meant)
        for form in (secret, quote(secret), quote(secret, safe=" +"), quote_plus(secret), repr(secret)[1:-1])
    }
    text = text.replace(url, without_secrets(url))
    for form in sorted(forms - {""}, key=len, reverse=True):  # a secret may be a part of another
        text = text.replace(form, HIDDEN)
    return text
