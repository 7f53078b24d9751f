"""The file of the best settings: written by a study, read by `dpaa train`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from dpaa.tuning.trial import Trial, best_toml, trials_behind


def test_the_best_settings_can_be_read_back_and_say_how_many_were_tried(tmp_path: Path) -> None:
    text = best_toml(
        "dpaa", {"l2": 1e-5, "weighted_layers": "all", "iiw": True}, Trial(7, "complete", {}, 0.5, 1.0), 30
    )
    (tmp_path / "best.toml").write_text(text)
    assert tomllib.loads(text) == {"method": "dpaa", "l2": 1e-5, "weighted_layers": "all", "iiw": True}
    assert trials_behind(tmp_path / "best.toml") == 30
    (tmp_path / "other.toml").write_text('# trial of mine\nmethod = "dpaa"\n')
    assert trials_behind(tmp_path / "other.toml") == 0
