import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa import DPAA, DPAAAsPrinted, DPAANormalised, LightGCN
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.tables import Tables
from tests.conftest import random_pairs
from tests.graph import reference
from tests.methods.tools import some_graph, started


class DenseDPAA:
    """The definition with dense float64 matrices and loops over pairs."""

    def __init__(self, graph: BipartiteGraph, chosen: DPAA, pretrained: Pretrained | None) -> None:
        self.graph, self.chosen, self.pretrained = graph, chosen, pretrained
        self.pairs = list(zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True))
        self.r: dict[int, np.ndarray] = {}
        for layer in self.weighted():
            self.r[layer] = self.pretrained_weight(layer) if pretrained is not None else np.ones(len(self.pairs))
        self.ends: list[np.ndarray] = []
        """Layer 0 before the first epoch, then at the end of each."""
        self.share, self.shift = 1.0, None

    def weighted(self) -> list[int]:
        if not self.chosen.iiw:
            return []
        return list(range(self.chosen.layers)) if self.chosen.first_layer_only < 1 else [0]

    def inverse_weight(self, vectors: np.ndarray) -> np.ndarray:
        found = []
        for user, item in self.pairs:
            u, i = vectors[user], vectors[self.graph.n_users + item]
            scale = math.sqrt(u @ u) * math.sqrt(i @ i)
            found.append(1.0 - (u @ i / scale if scale > 0 else 0.0))
        return np.array(found)

    def pretrained_weight(self, layer: int) -> np.ndarray:
        by_readout = self.chosen.interaction_strength_from == "readout"
        vectors = self.pretrained.readout if by_readout else self.pretrained.vectors(layer)
        return self.inverse_weight(vectors.double().numpy())

    def emphasis(self) -> list[float]:
        raw = [(layer + 1) ** self.chosen.layer_emphasis for layer in range(self.chosen.layers)]
        total = sum(raw)
        scale = {"mean": len(raw) / total, "sum": 1 / total, "none": 1.0}[self.chosen.layer_weight_norm]
        return [value * scale for value in raw]

    def matrices(self) -> list[np.ndarray]:
        n = self.graph.n_nodes
        users, items = self.graph.user_degree.numpy(), self.graph.item_degree.numpy()
        found = []
        for layer, emphasis in enumerate(self.emphasis()):
            matrix = np.zeros((n, n))
            for edge, (user, item) in enumerate(self.pairs):
                r, gamma = (self.r[layer][edge] if layer in self.r else 1.0), self.chosen.first_layer_only
                weight = emphasis * (r if layer == 0 else (1 - gamma) * r + gamma)
                if self.chosen.neighbour_scaling == "symmetric":
                    weight /= math.sqrt(users[user] * items[item])
                matrix[user, self.graph.n_users + item] = matrix[self.graph.n_users + item, user] = weight
            found.append(matrix)
        return found

    def layers(self, ego: np.ndarray) -> list[np.ndarray]:
        found = [ego]
        for matrix in self.matrices():
            found.append(matrix @ found[-1] + self.chosen.initial_residual * ego)
        return found

    def refresh(self, ego: np.ndarray) -> None:
        layers = self.layers(ego)
        readout = np.mean(layers, axis=0)
        self.ends.append(ego)
        if len(self.ends) > 2:  # two epochs were trained; both read-outs under the weights that are still active
            before = np.mean(self.layers(self.ends[-2]), axis=0)
            self.shift = float(np.mean(np.sqrt(np.sum((readout - before) ** 2, axis=1))))
        constant, trust = {"current": 0.0, "pretrained": 1.0}, self.chosen.half_trust_shift
        if self.chosen.estimate in constant:
            self.share = constant[self.chosen.estimate]
        elif self.shift is None or trust == 0:
            self.share = 1.0
        else:
            self.share = self.shift / (self.shift + trust)
        for layer in self.weighted():
            by_readout = self.chosen.interaction_strength_from == "readout"
            now = self.inverse_weight(readout if by_readout else layers[layer])
            before = self.pretrained_weight(layer) if self.pretrained is not None else 0.0
            self.r[layer] = self.share * before + (1 - self.share) * now


@st.composite
def dpaa_settings(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "embedding_size": draw(st.sampled_from([1, 3, 40])),
        "layers": draw(st.integers(1, 4)),
        "layer_emphasis": draw(st.sampled_from([0, 1, 2.5])),
        "initial_residual": draw(st.sampled_from([0, 0.2, 1])),
        "half_trust_shift": draw(st.sampled_from([0, 1e-4, 1e-2, 10])),
        "first_layer_only": draw(st.sampled_from([0.0, 0.3, 1.0, 1.0])),
        "neighbour_scaling": draw(st.sampled_from(["symmetric", "none"])),
        "layer_weight_norm": draw(st.sampled_from(["mean", "sum", "none"])),
        "interaction_strength_from": draw(st.sampled_from(["layer", "readout"])),
        "iiw": draw(st.sampled_from([True, True, True, False])),
        "estimate": draw(st.sampled_from(["blend", "blend", "current", "pretrained"])),
    }


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    chosen=dpaa_settings(),
    flat=st.booleans(),
    still=st.booleans(),
)
def test_every_formula_equals_the_dense_reference(
    seed: int, shape: tuple[int, int], chosen: dict[str, Any], flat: bool, still: bool
) -> None:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, *shape, 0.5), *shape)
    if not graph.n_edges:
        return
    method = attach(DPAA(**chosen), graph)
    draw = lambda: torch.from_numpy(rng.normal(size=(graph.n_nodes, 3)).astype(np.float32))  # noqa: E731
    layers = () if flat else tuple(draw() for _ in range(chosen["layers"] + 1))
    pretrained = Pretrained(draw(), layers) if method.pretrained_layers() is not None else None
    if pretrained is not None:
        pretrained.readout[0] = 0  # a zero vector: cosine 0
        method.take_pretrained(pretrained)
    dense = DenseDPAA(graph, method, pretrained)
    Tables.start(method)
    for epoch in (1, 2, 3, 4):
        ego = method.tables.ego.rows()
        told = method.refresh(epoch)
        if chosen["iiw"]:
            dense.refresh(ego.double().numpy())
            assert told["pretrained_share"] == pytest.approx(dense.share, rel=1e-4)
            if dense.shift is None:
                assert told["embedding_shift"] is None
            else:
                assert told["embedding_shift"] == pytest.approx(dense.shift, rel=1e-4, abs=1e-6)
        else:
            assert told == {}
        for layer, matrix in enumerate(dense.matrices()):
            found = method.edge_weights(layer).to_user.numpy()
            user, item = graph.edge_user.numpy(), graph.edge_item.numpy() + graph.n_users
            np.testing.assert_allclose(found, matrix[user, item], rtol=1e-4, atol=1e-5)
        scale = max(1.0, float(np.abs(dense.layers(ego.double().numpy())[-1]).max()))
        for found_layer, expected in zip(
            method.tables.propagation.layers(method.tables.ego), dense.layers(ego.double().numpy()), strict=True
        ):
            np.testing.assert_allclose(found_layer.rows().numpy(), expected, rtol=1e-3, atol=1e-5 * scale)
        if not still:  # "still": the tables do not move, Δ = 0
            step = rng.normal(size=ego.shape).astype(np.float32) * 0.01
            method.tables.ego.copy_(ego + torch.from_numpy(step))


@pytest.mark.parametrize(("kind", "norm"), [(DPAAAsPrinted, "none"), (DPAANormalised, "sum")])
def test_presets(kind: type[DPAA], norm: str) -> None:
    assert kind().get_params() == DPAA(neighbour_scaling="none", layer_weight_norm=norm).get_params()


@given(seed=st.integers(0, 1000), eta=st.sampled_from([0.0, 2.0, 3.0]), gamma=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=20)
def test_as_printed_is_equations_8_to_12(seed: int, eta: float, gamma: float) -> None:
    """Pair by pair: `e_u^(l+1) = Σ_i w_ui^l e_i^l + δ e_u^0`, neither degrees nor a sum over layers in sight."""
    rng, layers = np.random.default_rng(seed), 3
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 6, 5, 0.5), 6, 5)
    method = attach(DPAAAsPrinted(layers=layers, layer_emphasis=eta, first_layer_only=gamma, embedding_size=4), graph)
    before = rng.normal(size=(layers, 11, 4)).astype(np.float32)
    method.take_pretrained(Pretrained(torch.from_numpy(before[0]), tuple(map(torch.from_numpy, before))))
    Tables.start(method)
    method.refresh(1)  # β = 1
    ego = method.tables.ego.rows().double().numpy()
    expected = [ego]
    for layer in range(layers):
        following = method.initial_residual * ego
        for user, item in zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True):
            m_u, m_i = before[layer, user].astype(float), before[layer, 6 + item].astype(float)
            r = 1 - m_u @ m_i / math.sqrt((m_u @ m_u) * (m_i @ m_i))
            lam = (layer + 1) ** eta
            w = lam * r if layer == 0 else lam * ((1 - gamma) * r + gamma)
            following[user] += w * expected[-1][6 + item]
            following[6 + item] += w * expected[-1][user]
        expected.append(following)
    for found, wanted in zip(method.tables.propagation.layers(method.tables.ego), expected, strict=True):
        np.testing.assert_allclose(found.rows(), wanted, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(wanted).max()))


def one_pair(**chosen: Any) -> Any:
    """One user who took one item, and two layers; `r_m` is 1 − cos 60° = 0.5 at both."""
    graph = BipartiteGraph.from_pairs(Pairs.of([0], [0]), 1, 1)
    method = attach(DPAA(embedding_size=2, layers=2, layer_emphasis=1, layer_weight_norm="none", **chosen), graph)
    vectors = torch.tensor([[1.0, 0.0], [0.5, math.sqrt(0.75)]])
    method.take_pretrained(Pretrained(vectors, (vectors, vectors)))
    Tables.start(method)
    return method


@pytest.mark.parametrize(("gamma", "second"), [(1.0, 2.0), (0.0, 1.0), (0.5, 1.5), (0.8, 1.8)])
def test_gamma_blends_by_hand(gamma: float, second: float) -> None:
    """w^0 = 1 · 0.5; w^1 = 2 · ((1 − γ) · 0.5 + γ)."""
    method = one_pair(first_layer_only=gamma)
    for _ in range(2):  # as begun, and with β = 1
        weights = [method.edge_weights(layer).to_user.item() for layer in (0, 1)]
        assert weights == pytest.approx([0.5, second])
        method.refresh(1)


def test_beta_over_four_epochs_by_hand() -> None:
    """User (x, 0) and item (0, 1) are orthogonal: r_c = 1, r = 1 − β / 2, and x alone moves.

    Layers of the user: x, w^0 · item, w^0 w^1 x; of the item: 1, w^0 · x, w^0 w^1.  A step s of x moves the read-outs
    by s (1 + 2 w^0) / 3 and s w^0 / 3 (η = 1, so w^1 = 2), and Δ is half their sum: s (1 + 3 w^0) / 6.
    """
    method = one_pair(initial_residual=0, half_trust_shift=0.1)
    ego = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    w, expected = 0.5, []
    for epoch, step in enumerate((0.0, 5.0, 0.6, 0.3), start=1):  # 5: from the random table to the end of epoch 1
        ego[0, 0] += step
        method.tables.ego.copy_(ego)
        shift = step * (1 + 3 * w) / 6 if epoch > 2 else None  # under the weights that were active till now
        beta = 1.0 if shift is None else shift / (shift + 0.1)
        expected.append((shift, beta))
        w = beta * 0.5 + (1 - beta)
        told = method.refresh(epoch)
        assert told["embedding_shift"] == (None if shift is None else pytest.approx(shift, rel=1e-5))
        assert told["pretrained_share"] == pytest.approx(beta, rel=1e-5)
        assert method.edge_weights(0).to_user.item() == pytest.approx(w, rel=1e-5)
    assert [beta for _, beta in expected[:2]] == [1.0, 1.0]
    assert expected[2] == (pytest.approx(0.25), pytest.approx(0.25 / 0.35))


@pytest.mark.parametrize("n_layers", [0, 1, 4])
def test_layers_of_a_pretrained_lightgcn_are_as_many_as_needed(n_layers: int) -> None:
    """Trained with two layers; any number can be computed."""
    graph = some_graph()
    method = started(LightGCN, graph, embedding_size=6, layers=2)
    method.tables.update_embeddings()
    found = Pretrained.of(method, n_layers, {"run": "runs/plain"})
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(graph.n_users, graph.n_items, user, item)
    matrix = reference.adjacency(graph.n_users, graph.n_items, user, item, weight, weight)
    ego = method.tables.ego.rows().double().numpy()
    for layer, expected in enumerate(reference.layers([matrix] * n_layers, ego)):
        np.testing.assert_allclose(found.vectors(layer), expected, atol=1e-6)
    np.testing.assert_allclose(found.readout, reference.readout([matrix] * 2, ego), atol=1e-6)


def test_a_digest_of_pretrained_vectors_knows_every_number_and_nothing_else() -> None:
    readout, layers = torch.rand(4, 3), (torch.rand(4, 3), torch.rand(4, 3))
    digest = Pretrained(readout, layers).digest
    same = Pretrained(readout.T.contiguous().T, tuple(layer.clone() for layer in layers), {"from": "elsewhere"})
    assert same.digest == digest
    assert len({digest, Pretrained(readout).digest, Pretrained(readout, layers[::-1]).digest}) == 3
    layers[1][3, 2] += 1e-6
    assert Pretrained(readout, layers).digest != digest
