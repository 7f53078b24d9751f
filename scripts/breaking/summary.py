"""What campaigns tried and found, as Markdown: which code, which calls, how often each command, what was found.

    python -m scripts.breaking.summary OUT [OUT …] --to docs/results/breaking.md

OUT are folders of `break_everything.py`, all of one code.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.breaking import files, full_disk, kills
from scripts.breaking.ledger import Attack, Ledger
from scripts.breaking.mutations import THINGS

MUTATIONS = ("spoilt content", "content with its digest", "other things", "files of others", "odd names", "links")
SIGNALS = tuple(kills.NAMES.values())
POINTS = (*full_disk.MODES, "no file larger than")
CAMPAIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    files.CAMPAIGN: ("Strangers' files", MUTATIONS),
    kills.CAMPAIGN: ("Kills", SIGNALS),
    full_disk.CAMPAIGN: ("Full disks", POINTS),
}
LEGEND = {
    files.CAMPAIGN: "A file that the command reads is spoilt (or spoilt and the digest in the manifest mended), "
    "replaced by a pipe, device, folder or link, or by a sound file of another run, study or dataset; the file has a "
    "name that nobody would give; or links are planted where the command writes.",
    kills.CAMPAIGN: "Each attack interrupts a call once to three times, after a random part of its time or before one "
    "of its changes of a file, and then lets it finish; the signals are counted that came in time.",
    full_disk.CAMPAIGN: "A write fails for want of room, or it and all that follow, or no file may grow beyond some "
    "size; then the call is made again with room.",
}


TITLE, EARLIER = "# Trying to break it", "# Another round"
"""A round is of one code and one seed; the first that is named comes first."""


def attacks_of(folders: list[Path]) -> list[Attack]:
    """All of them; folders that share the work may have some twice."""
    return [attack for folder in folders for attack in Ledger(folder / "attacks.jsonl").attacks]


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE")
    asked = parser.parse_args()
    rounds: dict[str, list[Path]] = {}
    for folder in asked.folders:
        rounds.setdefault((folder / "about.json").read_text(), []).append(folder)
    pages = [
        page(json.loads(about), list({(one.campaign, one.id): one for one in attacks_of(folders)}.values()))
        for about, folders in rounds.items()
    ]
    asked.to.write_text("\n".join([pages[0], *(one.replace(TITLE, EARLIER, 1) for one in pages[1:])]))


def page(about: dict[str, Any], attacks: list[Attack]) -> str:
    """All of it."""
    tried = [attack for attack in attacks if not attack.skipped]
    found = [attack for attack in tried if attack.findings]
    peak = max((attack.peak_mb for attack in tried), default=0)
    lines = [
        TITLE,
        "",
        f"Code: commit {about['code']['commit']}, sources {about['code']['src']}; seed {about['seed']}.  Made by",
        "",
        *(f"    python scripts/break_everything.py --only {name} --out OUT" for name in CAMPAIGNS),
        "    python -m scripts.breaking.summary OUT … --to docs/results/breaking.md",
        "",
        f"{len(tried):,} attacks, **{len(found):,} with a finding**: a traceback or a library's panic, a hang, more "
        "than 2 GB of memory, a sentence missing, something lost, half written, altered or left behind, a spoilt file "
        f"accepted where it must be refused, a difference after going on.  Largest peak {peak:,} MB.",
    ]
    for campaign, (title, kinds) in CAMPAIGNS.items():
        chosen = [attack for attack in tried if attack.campaign == campaign]
        if chosen:
            lines += ["", f"## {title}: {len(chosen):,} attacks", "", LEGEND[campaign], ""]
            lines += _table(chosen, kinds, COUNTED[campaign])
            if campaign == full_disk.CAMPAIGN:
                lines += ["", *_coverage(chosen)]
    lines += ["", "## Findings", "", *(_findings(found) or ["None."])]
    return "\n".join(lines) + "\n"


def _table(attacks: list[Attack], kinds: tuple[str, ...], counted: Callable[[Attack], list[str]]) -> list[str]:
    """Rows of commands, columns of kinds."""
    lines = [f"| command | attacks | {' | '.join(kinds)} | findings |", f"|---|{'--:|' * (len(kinds) + 2)}"]
    by_command: dict[str, list[Attack]] = {}
    for attack in attacks:
        by_command.setdefault(_command(attack), []).append(attack)
    for name, chosen in [*sorted(by_command.items()), ("**all**", attacks)]:
        counts = Counter(kind for attack in chosen for kind in counted(attack))
        cells = " | ".join(f"{counts[kind]:,}" for kind in kinds)
        lines.append(f"| {name} | {len(chosen):,} | {cells} | {sum(bool(one.findings) for one in chosen)} |")
    return lines


def _command(attack: Attack) -> str:
    """`data log`, `train dpaa --overwrite`, `tune --jobs 2` …; for files that are read, without the options."""
    if attack.campaign != files.CAMPAIGN:
        return f"`{attack.id.split(' / ')[0]}`"
    words = shlex.split(attack.did.rpartition("; dpaa ")[2])
    return f"`{' '.join(words[: 2 if words[0] == 'data' else 1])}`"


def _mutation(attack: Attack) -> list[str]:
    mutation = attack.id.split(" / ")[-2]
    if attack.id.startswith("planted: "):
        return ["links"]
    if mutation.startswith(files.SWAP):
        return ["files of others"]
    if mutation == files.NAME:
        return ["odd names"]
    if mutation in THINGS:
        return ["other things"]
    return ["content with its digest" if mutation.startswith(files.REBOUND) else "spoilt content"]


def _signals(attack: Attack) -> list[str]:
    parts = attack.did.split(", ")
    return [name for part in parts for name in SIGNALS if part.startswith(name) and "it had ended" not in part]


def _point(attack: Attack) -> list[str]:
    return [kind for kind in POINTS if attack.id.split(" / ")[-1].startswith(kind)]


COUNTED: dict[str, Callable[[Attack], list[str]]] = {
    files.CAMPAIGN: _mutation,
    kills.CAMPAIGN: _signals,
    full_disk.CAMPAIGN: _point,
}


def _coverage(attacks: list[Attack]) -> list[str]:
    """Calls of which not every write was let fail."""
    writes: dict[str, int] = {}
    failed: dict[str, set[str]] = {}
    for attack in attacks:
        name, _, point = attack.id.rpartition(" / ")
        if told := re.search(r" of (\d+);", attack.did):
            writes[name] = int(told[1])
        if any(point.startswith(mode) for mode in full_disk.MODES):
            failed.setdefault(name, set()).add(point.rpartition(" ")[2])
    counts = {name: len(failed.get(name, ())) for name in writes}
    some = [f"`{name}` {counts[name]} of {number}" for name, number in writes.items() if counts[name] < number]
    told = f"all but {', '.join(some)}, drawn at random" if some else "all"
    return [f"Writes that were let fail, of each call: {told} (of slow calls each in one of the two ways, in turn)."]


def _findings(attacks: list[Attack]) -> list[str]:
    """What was found, how often and where."""
    places: dict[str, list[str]] = {}
    for attack in attacks:
        places.setdefault("; ".join(attack.findings), []).append(f"{attack.campaign}: {_command(attack)}")
    lines = (f"- {len(where):,} ×: {what} ({', '.join(sorted(set(where)))})" for what, where in sorted(places.items()))
    return [line.encode("utf-8", "replace").decode() for line in lines]


if __name__ == "__main__":
    main()
