"""Ctrl-C in the middle of a library ends a command as anywhere else: one word, exit code 130."""

from __future__ import annotations

import signal
import sys
import time
from types import SimpleNamespace

import polars as pl
import pytest

from dpaa.cli import main
from dpaa.cli.interrupts import Interrupts
from dpaa.data.parquet import polars_errors
from dpaa.errors import InputError


def run(monkeypatch: pytest.MonkeyPatch, body: object) -> int:
    """The exit code of a command whose work is `body`."""
    monkeypatch.setattr("dpaa.cli.app", lambda **_: body())  # type: ignore[operator]
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


class Broken:
    """Python cannot raise what its destructor raises."""

    def __del__(self) -> None:
        interrupt()


def test_an_interrupt_in_a_destructor_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        Broken()
        time.sleep(60)
        raise ValueError("the interrupt never came")

    assert run(monkeypatch, body) == 130
    assert capfd.readouterr().err == "interrupted\n"


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


def test_handlers_are_put_back_and_an_ignored_signal_stays_ignored() -> None:
    hook = sys.unraisablehook
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_unraisable_faults_go_where_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    fault = SimpleNamespace(exc_type=ValueError)
    with Interrupts():
        sys.unraisablehook(fault)  # type: ignore[arg-type]
    assert told == [fault]


def test_polars_does_not_call_a_file_damaged_because_of_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), polars_errors():
        raise pl.exceptions.PanicException("PyErr { type: <class 'KeyboardInterrupt'>, value: KeyboardInterrupt() }")
