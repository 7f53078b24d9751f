"""What can be wrong with what a user gave us: one sentence, exit code 2, no traceback."""

from __future__ import annotations


class InputError(ValueError):
    """The input or the call is wrong.

    The message is one sentence for the person who typed the command: it names the file, row, column or setting, the
    value that was found and the remedy.
    """


class DivergedError(InputError):
    """The loss became no number, or stayed far above its start: a checkpoint would only lead there again."""


class MissingExtraError(InputError):
    """A command needs an optional dependency that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed; install them with: pip install 'dpaa[{extra}]'"
        )
