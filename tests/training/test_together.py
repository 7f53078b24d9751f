"""The processes of torch.distributed, as far as one can be tried alone; `tests/runs/test_together.py` has several."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from dpaa.training import together
from dpaa.training.together import ONE_PROCESS, Ended, Group, LostProcessError, started_together


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    told = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))
    with Group.joined() as found:
        yield found
    dist.destroy_process_group()


def test_what_one_says_is_heard_in_order_until_the_end(group: Group) -> None:
    other = Group()  # hears from the beginning
    group.say({"first": 1.5})
    assert group.share(lambda: {"recall@20": 0.1 + 0.2}) == {"recall@20": 0.1 + 0.2}
    group.say({"end": True})
    assert other.hear() == {"first": 1.5}
    assert other.hear() == {"recall@20": 0.1 + 0.2}
    with pytest.raises(Ended):
        other.hear()


def test_tensors_and_wishes(group: Group) -> None:
    given = {"table": torch.randn(3, 2).T, "steps": torch.tensor(4, dtype=torch.int32)}
    found = dict(group.from_leader(given))
    assert all(torch.equal(found[name], given[name]) for name in given)
    assert group.agree(2) == 2
    assert torch.equal(group.everyone(given["table"].contiguous())[0], given["table"])
    assert list(group.reports()) == []


def test_who_is_told_to_end_waits_for_the_leading_process_but_not_for_ever(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(together, "FAREWELL_SECONDS", 0.05)
    group._asked_to_end = 0.0
    with pytest.raises(LostProcessError, match="continue with the same call and --resume"):
        group.hear()


def test_one_process_asks_nobody() -> None:
    assert not started_together()
    assert ONE_PROCESS.agree(1) == 1
    assert ONE_PROCESS.share(lambda: {"a": 1}) == {"a": 1}
    ONE_PROCESS.say({"end": True})
    assert list(ONE_PROCESS.reports()) == []
