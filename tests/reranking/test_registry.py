"""The names of re-rankers: each leads to a class of that name, which is documented and made without settings."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpaa.ranking import RERANKERS, Reranker


@pytest.mark.parametrize("name", RERANKERS.built_in)
def test_every_name_leads_to_its_class(name: str) -> None:
    found = RERANKERS[name]
    assert issubclass(found, Reranker)
    assert found.name == name
    assert found.title
    assert found.__doc__
    assert all(field.description for field in found.model_fields.values())
    assert found().in_words().startswith(name)


def test_the_list_does_without_torch() -> None:
    code = (
        "import sys; from dpaa.ranking.registry import RERANKERS; list(RERANKERS); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
