"""`dpaa debias`."""

from __future__ import annotations

from pathlib import Path

from tests.errors.mistake import Mistake

QUICK = "--methods ease --rerank dial --out trade"


def debiasing(kind: str, words: str, *says: str) -> Mistake:
    """`dpaa debias` on the small dataset."""
    return Mistake(kind, f"dpaa debias data {words}", says)


def link_run() -> None:
    Path("trade").mkdir()
    Path("trade/run").symlink_to(Path("run").resolve())


DEBIASING = [
    debiasing("a goal that is none", f"--goal fairness {QUICK}", "there is no goal 'fairness'", "niche-recall"),
    debiasing("a goal named twice", f"--goal arp --goal arp {QUICK}", "name at least one goal, and each once"),
    debiasing("more accuracy than all to keep", f"--keep-accuracy 98 {QUICK}", "such as 0.99, got 98.0"),
    debiasing(
        "a promise and a target", f"--keep-accuracy 0.9 --target 'coverage>0.5' {QUICK}",
        "--keep-accuracy and --target choose differently; give one of them",
    ),
    debiasing("a target without a number", f"--target coverage {QUICK}", "'coverage' is not NAME OP NUMBER"),
    debiasing("an estimate that is none", f"--estimate best {QUICK}", "must be one of auto, logged, ips, balanced"),
    debiasing("no time at all", f"--budget 0 {QUICK}", "a number of minutes above 0"),
    debiasing("nothing to debias", "--methods , --out trade", "there is no model to choose from; name methods"),
    debiasing("hyperparameters and nothing to train", "--runs run --set epochs=1 --out trade", "that is trained here"),
    debiasing("a baseline that does not exist", "--runs run --base nowhere --out trade", "no run folder nowhere"),
    debiasing("a baseline on another dataset", "--runs run --base numbers-run --out trade", "another dataset than"),
    debiasing("a frontier among other things", "--methods ease --out diary", "diary holds something else"),
    debiasing("a frontier in place of a file", "--methods ease --out log.csv", "log.csv holds something"),
    debiasing("a frontier where nothing can be written", "--methods ease --out /proc/trade", "cannot write /proc"),
    Mistake(
        "a frontier without validation", f"dpaa debias untested {QUICK}",
        ("has no validation split to choose on", "--valid 0.1"),
    ),
    Mistake(
        "a frontier whose run is a link", f"dpaa debias data {QUICK}",
        "trade/run is a link that leads out of trade; remove it and call again", spoil=link_run,
    ),
]  # fmt: skip

SECTIONS = {"The best trade-off": DEBIASING}
