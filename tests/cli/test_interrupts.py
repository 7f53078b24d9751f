"""Ctrl-C in the middle of a library ends a command as anywhere else: one word, exit code 130."""

import signal

import polars as pl
import pytest

from dpaa.cli import main
from dpaa.data.parquet import polars_errors
from dpaa.errors import InputError


def run(monkeypatch: pytest.MonkeyPatch, body: object) -> int:
    """The exit code of a command whose work is `body`."""
    monkeypatch.setattr("dpaa.cli.app", lambda **_: body())  # type: ignore[operator]
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "fault", [ValueError("no shape"), InputError("not a Parquet file"), pl.exceptions.PanicException("x")]
)
def test_an_interrupt_that_a_library_takes_for_a_fault_is_an_interrupt(
    fault: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        try:
            interrupt()
        except KeyboardInterrupt:
            raise fault from None

    assert run(monkeypatch, body) == 130
    assert capfd.readouterr().err == "interrupted\n"


def test_without_an_interrupt_faults_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def body() -> None:
        raise ValueError("a fault of our own")

    monkeypatch.setattr("dpaa.cli.app", lambda **_: body())
    with pytest.raises(ValueError, match="of our own"):
        main()


def test_polars_does_not_call_a_file_damaged_because_of_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), polars_errors():
        raise pl.exceptions.PanicException("PyErr { type: <class 'KeyboardInterrupt'>, value: KeyboardInterrupt() }")
