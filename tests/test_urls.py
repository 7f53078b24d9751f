from __future__ import annotations

import pytest

from dpaa._text import hide_secrets, without_secrets
from dpaa.errors import InputError


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("postgresql://host:5432/db?user=x&password=secret", "postgresql://host:5432/db?password=***&user=***"),
        ("s3://bucket/a@b/log.parquet", "s3://bucket/a@b/log.parquet"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("clicks.csv", "clicks.csv"),
    ],
)
def test_secrets_are_not_shown(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


@pytest.mark.parametrize("url", ["x://bob:s3cr@et@h/db", "x://bob:s3cr/et@h/db", "x://bob:s3cr?et@h", "x://bob:1/et@h"])
def test_a_password_that_could_end_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="write @ as %40") as refused:
        without_secrets(url)
    assert "s3cr" not in str(refused.value)


def test_secrets_are_hidden_in_what_drivers_say() -> None:
    url = "postgresql://me:p%40ss%2Bword@host/db?sslpassword=other%20one"
    said = f"no login with {url}, p@ss+word, p%40ss%2Bword, other one and {'other one'!r}"
    hidden = hide_secrets(said, url)
    assert not any(secret in hidden for secret in ("p@ss+word", "p%40ss", "other one", "other%20one"))
    assert "postgresql://me:***@host/db" in hidden
