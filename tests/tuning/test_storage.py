"""Storage URLs: parsed by SQLAlchemy's own parser, and never shown or kept with a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from dpaa.errors import InputError
from dpaa.tuning.locks import check_storage
from dpaa.tuning.storage import url_of, without_secrets
from tests.command import dpaa_ok, run_dpaa


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://me:secret@host/db", "mysql://me:***@host/db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql://me@host/db?password=s3cret", "postgresql://me@host/db?password=***"),
        ("postgresql://me:p%40ss@host/db?sslpassword=x&a=1", "postgresql://me:***@host/db?a=***&sslpassword=***"),
    ],
)
def test_secrets_are_neither_shown_nor_kept(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    assert without_secrets(url.replace("secret", "other").replace("s3cret", "other")) == shown


@pytest.mark.parametrize("url", ["postgresql://bob:s3cr@et@h/db", "postgresql://bob:s3cr/et@h/db", "x://bob:s3cr?et@h"])
def test_an_unescaped_password_is_refused_and_not_half_shown(url: str) -> None:
    with pytest.raises(InputError, match=r"write @ as %40") as refused:
        without_secrets(url)
    assert not any(part in str(refused.value) for part in ("s3cr", "et@h", "bob"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?password=s3cret",
        "nosuchdriver://bob:s3cret@h/db",
        "not an url s3cret:",
    ],
)
def test_errors_of_drivers_tell_no_secret(url: str) -> None:
    with pytest.raises(InputError) as refused:
        check_storage(url)
    assert "s3cret" not in str(refused.value)


def test_a_study_keeps_no_secret_of_its_storage(tmp_path: Path) -> None:
    dpaa_ok("data", "demo", "--users", 60, "--items", 40, "--out", tmp_path / "data")
    url = f"sqlite:///{tmp_path / 'trials.db'}?timeout=77"
    said = dpaa_ok(
        *("tune", tmp_path / "data", "--method", "item-knn", "--trials", 2, "--seeds", 0),
        *("--storage", url, "--out", tmp_path / "study"),
    )
    written = "".join(file.read_text(errors="replace") for file in (tmp_path / "study").glob("*.*") if file.is_file())
    assert "timeout=77" not in said.out + said.err + written
    assert "timeout=***" in written


def test_a_file_of_any_name_has_an_url(tmp_path: Path) -> None:
    assert url_of(tmp_path / "a?b#c%d.sqlite").startswith("sqlite:///")


def test_the_name_of_a_dataset_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    monkeypatch.chdir(tmp_path)
    dpaa_ok("data", "demo", "--users", 60, "--items", 40, "--out", "data")
    about = json.loads(Path("data/dataset.json").read_text())
    Path("data/dataset.json").write_text(json.dumps(about | {"name": "../../outside"}))
    said = run_dpaa("tune", "data", "--method", "item-knn", "--trials", 1, "--seeds", 0)
    assert said.code == 0, said.err
    assert [folder.parent.name for folder in Path("studies").iterdir()] == ["studies"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "studies"]
    assert not list(tmp_path.parent.glob("outside*"))
