"""Losses, gradients and scores equal those of public implementations, run once on the same small inputs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import dpaa
from dpaa.methods._shared import distance_correlation, items_of_users
from dpaa.methods.base import attach
from dpaa.methods.contrast import batch_softmax, info_nce
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.ipl import hit_ratios
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.resn import principal_energy
from dpaa.methods.tables import Batch, Tables, scores
from tests.golden.files import HERE, N_USERS, all_scores, assert_same, golden, graph, loss_and_gradient, method, triples
from tests.methods.tools import learned


@pytest.mark.parametrize("file", sorted(HERE.glob("*.json")), ids=lambda file: file.stem)
def test_every_array_has_its_birth_certificate(file: Path) -> None:
    found = json.loads(file.read_text(encoding="utf-8"))
    if file.stem in ("inputs", "reranking"):
        return
    certificate = found["certificate"]
    assert {"made", "with", "what", "tolerance"} <= certificate.keys()
    assert "package" in certificate or {"repository", "commit"} <= certificate.keys()


def noise(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """What is drawn comes from numpy's stream, as it did on the other side."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.from_numpy(rng.random(tuple(shape), dtype=np.float32)))


def check(name: str, made: Any, batch: Batch, rtol: float = 2e-5, atol: float = 2e-6, part: str | None = None) -> None:
    expected = golden(name) if part is None else golden(name)[part]
    loss, gradient = loss_and_gradient(made, batch)
    assert_same(loss, expected["loss"], rtol, atol)
    assert_same(gradient, expected["gradient"], rtol, atol)


def with_drawn(name: str) -> Batch:
    """The triples, and the negatives that the file was made with."""
    return Batch(*triples(), more_items=(torch.tensor(golden(name)["drawn"]),))


POWERS = {"receiver_power": 0.55, "sender_power": -0.15, "ego_share": 0.3}
PARTS = {"interest_weight": 0.3, "conformity_weight": 0.2, "discrepancy_weight": 0.25}
PROPENSITY = {"propensity_power": 0.5, "propensity_floor": 0.05}
ALIKE: list[tuple[str, type[GraphMethod], dict[str, Any]]] = [
    ("lightgcn", dpaa.LightGCN, {"layers": 3, "l2": 0.01}),
    ("lightgcn_pp", dpaa.LightGCNpp, {"layers": 3, "l2": 0.01, **POWERS}),
    ("ips", dpaa.IPS, {"layers": 2, "l2": 0.01}),
    ("bsl", dpaa.BSL, {"layers": 2, "temperature": 0.2, "temperature_ratio": 1.25, "l2": 0}),
    ("ssm", dpaa.SSM, {"layers": 2, "temperature": 0.14, "l2": 0, "negatives": "batch"}),
    ("directau", dpaa.DirectAU, {"layers": 2, "uniformity_weight": 1.7, "l2": 0}),
    ("dice", dpaa.DICE, {"layers": 2, "l2": 0, **PARTS}),
    ("sam_reg", dpaa.SAMReg, {"layers": 2, "correlation_weight": 0.3, "l2": 0}),
    ("relmf", dpaa.RelMF, {"layers": 0, "l2": 0, "unclicked_weight": 0.4, **PROPENSITY}),
]
"""Those that need the table and a batch of triples and no more; the certificate says who made the array."""
LOOSER = {"dice": (5e-5, 5e-6), "sam_reg": (2e-4, 2e-6)}


@pytest.mark.parametrize(("name", "kind", "chosen"), ALIKE, ids=[row[0] for row in ALIKE])
def test_loss_gradient_and_scores_of_public_code(name: str, kind: type[GraphMethod], chosen: dict[str, Any]) -> None:
    made, found = method(kind, **chosen), golden(name)
    batch = with_drawn(name) if "drawn" in found else Batch(*triples(), epoch=1)
    check(name, made, batch, *LOOSER.get(name, ()))
    if "scores" in found:
        assert_same(all_scores(made), found["scores"])
    if "weights" in found:
        assert_same(made.item_weight, found["weights"])


@pytest.mark.parametrize("weighting", ["linear", "exponential"])
def test_apda_without_noise_as_its_authors_have_it(weighting: str) -> None:
    settings = {"residual": 0.5, "scale": 1.2, "similarity": "cosine/D", "noise": 0, "dropout": 0}
    made = method(dpaa.APDA, layers=3, l2=0.01, weighting=weighting, **settings)
    check("apda", made, Batch(*triples()), 5e-5, 5e-6, weighting)
    assert_same(all_scores(made), golden("apda")[weighting]["scores"], 5e-5, 5e-6)


def test_dap_in_one_cluster_as_its_authors_have_it() -> None:
    made = method(dpaa.DAP, layers=3, high_strength=0.4, low_strength=0.3, clusters=1)
    made.finish()
    assert_same(made.scorer()(torch.arange(N_USERS)), golden("dap")["scores"])


@pytest.mark.parametrize("activation", ["tanh", "atan", "relu"])
def test_psl_as_its_authors_have_it(activation: str) -> None:
    made = method(dpaa.PSL, layers=2, temperature=0.12, activation=activation, l2=0)
    check("psl", made, with_drawn("psl"), part=activation)


def test_sl_at_k_as_its_authors_have_it() -> None:
    temperatures = {"temperature": 0.2, "weight_temperature": 0.8}
    made = method(dpaa.SLAtK, layers=2, list_length=4, quantile_epochs=1, n_negatives=1000, l2=0, **temperatures)
    made.refresh(2)  # a thousand draws leave none of the nine items out
    assert_same(made.quantile, golden("sl_at_k")["quantile"])
    check("sl_at_k", made, with_drawn("sl_at_k"))


def test_ddc_as_its_authors_have_it() -> None:
    found, lightgcn = golden("ddc"), method(dpaa.LightGCN, layers=2)
    lightgcn.finish()
    made = attach(dpaa.DDC(embedding_size=8, layers=2, preferred_share=0.4, group_share=0.25, l2=0.02), graph())
    made.take_pretrained(Pretrained.of(lightgcn, 2, {}))
    Tables.start(made)
    assert_same(made.popularity_direction, found["e_pop"])
    with torch.no_grad():
        made.popularity_shift.copy_(torch.tensor(found["alphas"]))
        made.preference_shift.copy_(torch.tensor(found["betas"]))
    loss, gradient = loss_and_gradient(made, Batch(*triples()))
    assert_same(loss, found["loss"])
    assert not gradient.any()  # the table is left alone
    assert_same(made.popularity_shift.grad, found["alphas_gradient"])
    assert_same(made.preference_shift.grad, found["betas_gradient"])
    assert_same(all_scores(made), found["scores"])
    assert_same(made.preference(made.user_embedding, made.item_embedding, items_of_users(made.graph)), found["e_pre"])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_turbo_cf_as_its_authors_have_it(order: int) -> None:
    made = learned(dpaa.TurboCF, graph(), user_power=0.6, similarity_power=1.3, filter_order=order)
    assert_same(made.scorer()(torch.arange(N_USERS)), golden("turbo_cf")["scores"][str(order)], 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("solver", "settings"),
    [
        ("rk4", {"order": 4, "sharpening": 2.5, "ideal_weight": 0.2}),
        ("euler", {"order": 1, "sharpening": 1.2, "ideal_weight": 0.3, "with_blurred": True}),
    ],
)
def test_bspm_as_its_authors_have_it(solver: str, settings: dict[str, Any]) -> None:
    made = learned(dpaa.BSPM, graph(), rank=3, **settings)
    assert_same(made.scorer()(torch.arange(N_USERS)), golden("bspm")["scores"][solver])


def test_simgcl_as_warprec_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = method(dpaa.SimGCL, layers=2, contrast_weight=0.3, noise=0.15, temperature=0.25, l2=0.01)
    noise(monkeypatch, 7)
    check("simgcl", made, Batch(*triples("distinct_triples")))
    assert_same(all_scores(made), golden("simgcl")["scores"])


def test_xsimgcl_without_noise_as_warprec_has_it() -> None:
    settings = {"contrast_weight": 0.2, "noise": 0, "temperature": 0.15, "contrast_layer": 1}
    made = method(dpaa.XSimGCL, layers=3, l2=0.01, include_ego=True, **settings)
    check("xsimgcl", made, Batch(*triples("distinct_triples")))


def test_xsimgcl_as_its_authors_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"contrast_weight": 0.25, "noise": 0.2, "temperature": 0.15, "contrast_layer": 2}
    made = method(dpaa.XSimGCL, layers=3, l2=0, **settings)
    noise(monkeypatch, 15)
    check("xsimgcl_authors", made, Batch(*triples()))
    assert_same(all_scores(made), golden("xsimgcl_authors")["scores"])


def test_sgl_as_recbole_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = method(dpaa.SGL, layers=2, contrast_weight=0.15, dropped_edges=0.2, temperature=0.3, l2=0)
    kept = iter(golden("sgl")["kept"])

    def first_the_kept(n: int, **_: object) -> torch.Tensor:
        wanted = next(kept)
        return torch.tensor([*wanted, *sorted(set(range(n)) - set(wanted))])

    monkeypatch.setattr(torch, "randperm", first_the_kept)
    check("sgl", made, Batch(*triples(), epoch=1))


def test_ncl_as_recbole_has_it() -> None:
    found, size = golden("ncl"), len(triples()[0])
    weights = {"structure_weight": 0.01 * size, "kind_weight": 0.02 * size, "item_share": 1.5}  # of sums there
    made = method(dpaa.NCL, layers=3, hops=1, temperature=0.2, l2=0, **weights)
    clusters = {side: torch.tensor(found["clusters"][side]) for side in ("users", "items")}
    tables = {"users": made.tables.user_ego, "items": made.tables.item_ego}
    state = {f"cluster.{side}": clusters[side] for side in clusters}
    for side, table in tables.items():
        state[f"centres.{side}"] = torch.stack([table[clusters[side] == one].mean(dim=0) for one in range(3)])
    made.load_extra_state(state)
    check("ncl", made, Batch(*triples()))


def test_bc_loss_as_its_authors_have_it() -> None:
    found, batch = golden("bc_loss"), Batch(*triples())
    made = method(dpaa.BCLoss, layers=2, temperature=0.2, branch_temperature=0.3, branch_weight=0.4, l2=0)
    tables = [torch.tensor(found[f"{side}_popularity"], requires_grad=True) for side in ("user", "item")]
    made.user_popularity, made.item_popularity = tables
    user, item = (normalize(side) for side in made.branch(batch))
    branch = 0.4 * batch_softmax(user, item, 0.3)
    branch.backward()  # type: ignore[no-untyped-call]
    assert_same(branch.item(), found["branch_loss"])
    for side, table in zip(("user", "item"), tables, strict=True):
        assert_same(table.grad, found[f"{side}_branch_gradient"])
    made.user_popularity, made.item_popularity = (table.detach() for table in tables)  # frozen, as there by then
    check("bc_loss", made, batch, 5e-5, 5e-6)


def test_invcf_as_its_authors_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = golden("invcf")
    weights = {"popularity_weight": 0.3, "mixed_weight": 0.4, "discrepancy_weight": 0}
    made = method(dpaa.InvCF, layers=2, temperature=0.17, l2=0, **weights)
    with torch.no_grad():
        made.user_popularity.copy_(torch.tensor(found["user_popularity"]))
        made.item_popularity.copy_(torch.tensor(found["item_popularity"]))
    monkeypatch.setattr(torch, "randperm", lambda _n, **_: torch.tensor(found["order"]))
    check("invcf", made, Batch(*triples(), epoch=1), 1e-5, 1e-6)
    for side in ("user", "item"):
        assert_same(getattr(made, f"{side}_popularity").grad, found[f"{side}_popularity_gradient"], 1e-5, 1e-6)


def test_macr_as_the_authors_of_bc_loss_have_it() -> None:
    found = golden("macr")
    made = method(dpaa.MACR, layers=2, item_weight=0.3, user_weight=0.2, pairs="all", reference=0.7, l2=0)
    with torch.no_grad():
        made.item_branch.copy_(torch.tensor(found["item_weight"]))
        made.user_branch.copy_(torch.tensor(found["user_weight"]))
    check("macr", made, Batch(*triples()))
    assert_same(made.item_branch.grad, found["item_weight_gradient"])
    assert_same(made.user_branch.grad, found["user_weight_gradient"])
    made.finish()
    share = torch.sigmoid(made.user_embedding @ made.user_branch.detach())  # the user's factor, which we leave out
    assert_same(made.scorer()(torch.arange(N_USERS)) * share[:, None], found["scores"])


def test_ppac_as_its_authors_have_it() -> None:
    found = golden("ppac")
    strengths = {"personal_strength": 1.5, "global_strength": -0.7}
    made = method(dpaa.PPAC, layers=3, neighbours=4, proxy_weight=0.5, l2=0.01, **strengths)
    with torch.no_grad():
        for name, weight in found["weights"].items():
            getattr(made, name).copy_(torch.tensor(weight))
    check("ppac", made, Batch(*triples()))
    for name, gradient in found["gradients"].items():
        assert_same(getattr(made, name).grad, gradient)
    made.begin()
    assert_same(all_scores(made), found["scores"])


@pytest.mark.parametrize(
    ("name", "settings"),
    [("cvib", {"layers": 2, "agreement_weight": 4}), ("cvib_authors", {"layers": 0, "agreement_weight": 0})],
)
def test_cvib_as_a_port_and_its_authors_have_it(name: str, settings: dict[str, Any]) -> None:
    users, items = torch.tensor(golden("cvib")["random"]).T
    made = method(dpaa.CVIB, confidence_weight=0.3, l2=0, **settings)
    check(name, made, Batch(*triples(), more_users=(users,), more_items=(items,)))


def test_pd_and_pda_as_recbole_debias_has_them() -> None:
    found = golden("pda")
    pd, pda = (method(kind, layers=0, popularity_power=0.3, l2=0) for kind in (dpaa.PD, dpaa.PDA))
    check("pda", pd, Batch(*triples()))
    check("pda", pda, Batch(*triples()))
    assert_same(all_scores(pda), found["pda_scores"])
    ours, theirs = all_scores(pd).argsort(dim=1, descending=True), np.argsort(-np.array(found["pd_scores"]), axis=1)
    assert ours.tolist() == theirs.tolist()


def test_ubpr_as_its_authors_have_it() -> None:
    users, positive, _ = triples()
    made = method(dpaa.UBPR, layers=0, lowest_term=0.1, l2=0, **PROPENSITY)
    check("ubpr", made, Batch(users, positive, torch.tensor(golden("ubpr")["others"])))


@pytest.mark.parametrize("cells", [1 << 20, 1])
def test_resn_as_its_authors_have_it(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.resn.BLOCK_CELLS", cells)  # predictions in one block, and a user at a time
    found, (users, positive, negative) = golden("resn"), triples()
    distinct, table = torch.unique(users), torch.tensor(golden("inputs")["table"])
    assert_same(principal_energy(table[distinct], table[N_USERS:]), found["regloss"])
    made = method(dpaa.ReSN, layers=0, spectral_weight=0.2 * len(distinct) / len(users), l2=0)
    check("resn", made, Batch(users, positive, negative))


def test_ultragcn_as_its_authors_have_it() -> None:
    found, (users, positive, negative) = golden("ultragcn"), triples()
    weights = {"positive_base": 0.1, "positive_degree": 1, "negative_base": 0.2, "negative_degree": 0.8}
    made = method(dpaa.UltraGCN, **weights, negative_weight=3, neighbour_weight=0.5, neighbours=4, l2=0)
    assert_same(made.near[1], found["neighbour_weights"])
    near = made.near[0][positive].reshape(-1)
    batch = Batch(users, positive, negative, more_items=(torch.tensor(found["negatives"]), near))
    check("ultragcn", made, batch)


def test_ipl_as_its_authors_have_it() -> None:
    found, log = golden("ipl"), graph()
    made = method(dpaa.IPL, layers=2, evenness_weight=0.7, count_power=1.4, l2=0)
    batch = Batch(*triples(), more_users=(log.edge_user,), more_items=(log.edge_item,))
    made.tables.update_embeddings()
    pairs = scores(made.user_embedding[log.edge_user], made.item_embedding[log.edge_item])
    assert_same(hit_ratios(pairs, log.edge_item, 1.4), found["ratios"])
    with_it, without = (loss_and_gradient(made, one) for one in (batch, Batch(*triples())))
    assert_same(with_it[0] - without[0], found["loss"])
    assert_same(with_it[1] - without[1], found["gradient"])


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [
        ("ease", dpaa.EASE, {"ridge": 2.5}),
        ("ips_lae", dpaa.IPSLAE, {"ridge": 2.5, "propensity_slope": 0.6}),
        ("gf_cf", dpaa.GFCF, {"rank": 3, "ideal_weight": 0.3}),
        ("item_knn", dpaa.ItemKNN, {"neighbours": 4}),
        ("svd_gcn", dpaa.SVDGCN, {"rank": 4, "emphasis": 3.0, "degree_shift": 4.0}),
    ],
)
def test_closed_forms_as_others_have_them(name: str, kind: Any, settings: dict[str, Any]) -> None:
    made = learned(kind, graph(), **settings)
    assert_same(made.scorer()(torch.arange(N_USERS)), golden(name)["scores"], 1e-5, 1e-6)


def test_info_nce_as_the_package_of_that_name_has_it() -> None:
    found, table = golden("info_nce"), torch.tensor(golden("inputs")["table"])
    one, two = table[:12].clone().requires_grad_(), table[9:].clone().requires_grad_()
    loss = info_nce(one, two, 0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert_same(loss, found["loss"])
    assert_same(one.grad, found["first_gradient"])
    assert_same(two.grad, found["second_gradient"])


def test_distance_correlation_as_dcor_has_it() -> None:
    found, table = golden("distance_correlation"), torch.tensor(golden("inputs")["table"]).double()
    first, second = table[:, :4], table[:, 4:]
    for name, other in (("between", second), ("squares", first**2), ("itself", 3 * first + 1)):
        assert_same(distance_correlation(first, other), found[name], 1e-5)


def test_ngcf_as_recbole_has_it() -> None:
    found = golden("ngcf")
    made = method(dpaa.NGCF, layers=2, dropout=0, sent="normalised", l2=0)
    weights = {name: torch.tensor(value) for name, value in found["weights"].items()}
    with torch.no_grad():
        for layer in range(2):
            own, product = (weights[f"{layer} {part} weight"].T for part in ("own", "product"))
            made.networks[layer] = torch.stack([own, product])
            made.biases[layer] = weights[f"{layer} own bias"] + weights[f"{layer} product bias"]
    check("ngcf", made, Batch(*triples()))
    assert_same(all_scores(made), found["scores"])


def test_contrasts_of_paac_as_warprec_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"popular_share": 0.3, "cross_weight": 0.4, "noise": 0.1, "temperature": 0.2}
    made = method(dpaa.PAAC, layers=2, alignment_weight=0, contrast_weight=0.3, include_ego=True, l2=0.01, **settings)
    noise(monkeypatch, 10)
    check("paac", made, Batch(*triples("distinct_triples")))
