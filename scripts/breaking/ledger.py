"""What was tried and what came of it: a line of JSON per attack, written as it goes, and a table at the end."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SHOWN = 200
"""Findings in the table; the file has all."""


@dataclass(frozen=True)
class Attack:
    """One line."""

    campaign: str
    id: str
    did: str
    """In words, with the command."""
    code: int | None
    """Exit code of the call that was attacked."""
    said: str
    """Its last line on stderr."""
    peak_mb: int
    seconds: float
    findings: list[str] = field(default_factory=list)
    skipped: str | None = None
    """Why it could not be tried."""

    @property
    def verdict(self) -> str:
        """In a word."""
        return "skipped" if self.skipped else "finding" if self.findings else "ok"


class Ledger:
    """The file of attacks; what is in it is not tried again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.attacks: list[Attack] = []
        if file.exists():
            lines = file.read_text().splitlines()
            self.attacks = [_attack(line) for line in lines if line.endswith("}")]  # the last one may be torn
            file.write_text("".join(_line(attack) for attack in self.attacks))
        self._known = {(attack.campaign, attack.id) for attack in self.attacks}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._known

    def add(self, attack: Attack) -> None:
        """Write it down."""
        self.attacks.append(attack)
        self._known.add((attack.campaign, attack.id))
        with self.file.open("a") as file:
            file.write(_line(attack))

    @property
    def findings(self) -> list[Attack]:
        """Attacks that found a fault."""
        return [attack for attack in self.attacks if attack.findings]

    def summary(self) -> str:
        """Markdown: counts per campaign, and the faults."""
        lines = ["| campaign | attacks | skipped | findings | seconds | largest MB |", "|---|--:|--:|--:|--:|--:|"]
        for name in dict.fromkeys(attack.campaign for attack in self.attacks):
            tried = [attack for attack in self.attacks if attack.campaign == name]
            skipped = sum(attack.verdict == "skipped" for attack in tried)
            found = sum(attack.verdict == "finding" for attack in tried)
            seconds, peak = sum(attack.seconds for attack in tried), max(attack.peak_mb for attack in tried)
            lines.append(f"| {name} | {len(tried) - skipped} | {skipped} | {found} | {seconds:,.0f} | {peak:,} |")
        lines += [f"\nskipped, {times} ×: {why}" for why, times in self._skipped().items()]
        if self.findings:
            lines += ["", "| fault | times | for example |", "|---|--:|---|"]
            for fault, attacks in sorted(self._by_fault().items(), key=lambda one: -len(one[1]))[:SHOWN]:
                lines.append(f"| {_cell(fault)} | {len(attacks)} | {_cell(attacks[0].id)} |")
        return "\n".join(lines) + "\n"

    def _skipped(self) -> dict[str, int]:
        return dict(Counter(attack.skipped for attack in self.attacks if attack.skipped))

    def _by_fault(self) -> dict[str, list[Attack]]:
        found = defaultdict(list)
        for attack in self.findings:
            for fault in dict.fromkeys(map(_general, attack.findings)):
                found[fault].append(attack)
        return found


def _general(fault: str) -> str:
    """Without what differs from time to time: random names, numbers."""
    return re.sub(r"\d[\d.,]*", "N", re.sub(r"-(?=\w*[\d_])[a-z0-9_]{8,12}\b|-[a-z0-9_]{8}(?=$|/)", "-X", fault))


def _line(attack: Attack) -> str:
    return json.dumps(asdict(attack) | {"verdict": attack.verdict}) + "\n"


def _attack(line: str) -> Attack:
    found: dict[str, Any] = json.loads(line)
    found.pop("verdict")
    return Attack(**found)


def _cell(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("|", "\\|").replace("\n", " ")
