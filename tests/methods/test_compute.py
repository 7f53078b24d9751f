from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import TILE_COLUMNS
from dpaa.methods.compute import BUFFER_BYTES, PROCESS_BYTES, Compute
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.settings import TrainedSettings


@pytest.mark.parametrize(("interactions", "expected"), [(1000, 2048), (1_024_000, 2048), (5_000_000, 10_000)])
def test_automatic_batch_size_keeps_the_number_of_batches(
    graph: BipartiteGraph, interactions: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = LightGCN(graph, TrainedSettings(batch_size="auto"))
    monkeypatch.setattr(method.sampler, "n_interactions", interactions)
    assert method.compute.batch_size == expected


def test_threads_are_at_most_one_per_tile(graph: BipartiteGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.compute.cores", lambda: 3)

    def threads(size: int, wanted: int | str, kernel: str = "bag") -> int:
        chosen = TrainedSettings(embedding_size=size, threads=wanted, kernel=kernel)  # type: ignore[arg-type]
        return Compute.of(graph, chosen, 10).threads

    columns = TILE_COLUMNS["bag"]
    assert [threads(size, 64) for size in (1, columns, columns + 1, 5 * columns)] == [1, 1, 2, 5]
    assert [threads(size, "auto") for size in (columns, 2 * columns, 5 * columns)] == [1, 2, 3]
    assert threads(5 * columns, 2) == 2
    assert threads(TILE_COLUMNS["wide-bag"], 64, "wide-bag") == 1


@given(interactions=st.integers(1, 10**7), size=st.just("auto") | st.integers(1, 10_000))
def test_batches_hold_every_interaction_and_none_is_empty(interactions: int, size: int | str) -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0], [0]), 1, 1)
    found = Compute.of(graph, TrainedSettings(batch_size=size), interactions)  # type: ignore[arg-type]
    assert (found.n_batches - 1) * found.batch_size < interactions <= found.n_batches * found.batch_size
    if size == "auto":
        assert found.n_batches <= 500


def test_what_the_manifest_says(graph: BipartiteGraph) -> None:
    chosen = TrainedSettings(embedding_size=8, batch_size=16, threads=1, kernel="csr")
    assert Compute.of(graph, chosen, 100).as_json() == {
        "device": "cpu",
        "kernel": "csr",
        "tile_columns": TILE_COLUMNS["csr"],
        "threads": 1,
        "batch_size": 16,
    }


def test_memory_grows_with_what_takes_it(graph: BipartiteGraph) -> None:
    def memory(**chosen: object) -> int:
        settings = TrainedSettings(**({"embedding_size": 64, "layers": 2, "batch_size": 512} | chosen))  # type: ignore[arg-type]
        return Compute.of(graph, settings, 1000).memory_bytes(graph, settings)

    plain = memory()
    assert plain > PROCESS_BYTES + BUFFER_BYTES + 5 * graph.n_nodes * 64 * 4
    assert min(memory(embedding_size=65), memory(batch_size=513)) > plain
