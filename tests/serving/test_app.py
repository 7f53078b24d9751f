"""The service over HTTP: its answers are the library's, and whatever is wrong with a request gets one sentence."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Any

import pytest

from dpaa import InputError, Model
from dpaa.serving._server import listen
from tests.command import run_dpaa
from tests.serving.conftest import Served
from tests.serving.made import drawn_choice

TOKEN = "0123456789abcdef0123"
KEY = {"Authorization": f"Bearer {TOKEN}"}


def check_list(content: dict[str, Any], frame: Any, name: str = "item_id") -> None:
    """The library's items in the library's order; scores may differ in the last bits of a batch."""
    rows = content["items"]
    assert [(row["id"], row["rank"]) for row in rows] == list(frame[name, "rank"].iter_rows())
    assert [row["score"] for row in rows] == pytest.approx(frame["score"].to_list(), rel=1e-5, abs=1e-5)


LISTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"dial": -0.5}, {"popularity_dial": -0.5}),
    ({"exclude": ["i00003", "i00050", "nowhere"]}, {"exclude": ["i00003", "i00050"]}),
    ({"allow": ["i00003", "i00120"], "dial": 1}, {"items": ["i00003", "i00120"], "popularity_dial": 1}),
    ({"rerank": "dial,kappa=-0.4"}, {"rerank": "dial,kappa=-0.4"}),
    ({"rerank": "xquad", "exclude": ["i00003"]}, {"rerank": "xquad", "exclude": ["i00003"]}),
    ({"at_most": {"colour": 2, "tags": 5}, "k": 6}, {"at_most": {"colour": 2, "tags": 5}}),
    (
        {"at_least": {"tags": 9}, "only": {"colour": ["red", "blue"]}, "exclude": ["i00001"]},
        {"at_least": {"tags": 9}, "only": {"colour": ["red", "blue"]}, "exclude": ["i00001"]},
    ),
    ({"at_most": {"tags": 3}, "rerank": "xquad", "k": 5}, {"at_most": {"tags": 3}, "rerank": "xquad"}),
]


@pytest.mark.parametrize(("query", "how"), LISTS)
def test_lists_equal_the_library(served: Served, model: Model, query: dict[str, Any], how: dict[str, Any]) -> None:
    """Of users, of histories and of the unknown, one by one and together."""
    client, k = served(), query.get("k", 20)
    users, histories = ["u00000", "nobody", "u00119"], [["i00003", "i00009"], ["i00001", "nowhere"], ["nowhere"]]
    if not {"only", "at_most", "at_least"} & query.keys():
        for user in users:
            content = client.get(f"/recommend/{user}", params=query).json()
            assert content["user"] == user
            check_list(content, model.recommend([user], k, **how))
    lists = client.post("/recommend", json={"users": users, **query}).json()["lists"]
    assert [(one["user"], one["fallback"]) for one in lists] == list(
        zip(users, (None, "popularity", None), strict=True)
    )
    for user, one in zip(users, lists, strict=True):
        check_list(one, model.recommend([user], k, **how))
    lists = client.post("/recommend", json={"histories": histories, **query}).json()["lists"]
    assert [(one["history"], one["fallback"]) for one in lists] == [(0, None), (1, None), (2, "popularity")]
    check_list(lists[0], model.recommend_for(["i00003", "i00009"], k, **how))
    check_list(lists[1], model.recommend_for(["i00001"], k, **how))
    check_list(lists[2], model.recommend(["nobody"], k, **how))


def test_similar_items_and_titles(served: Served, model: Model) -> None:
    content = served().get("/similar/i00003", params={"k": 6}).json()
    check_list(content, model.similar_items(["i00003"], 6), "similar_item_id")
    assert all("title" in row for row in content["items"])


def test_explanations(served: Served, model: Model) -> None:
    rows = served().get("/recommend/u00003", params={"explain": "true", "k": 5}).json()["items"]
    taken = model.item_ids.gather(model.train.item[model.train.user == 3]).to_list()
    assert all(row["explanation"]["because"] in taken for row in rows)
    counts = [int((model.item_ids.gather(model.train.item) == row["id"]).sum()) for row in rows]
    assert [row["explanation"]["interactions"] for row in rows] == counts
    assert {row["explanation"]["group"] for row in rows} <= {"popular", "niche"}


def test_what_the_page_shows(served: Served, model: Model) -> None:
    client = served()
    item = client.get("/items/i00000", params={"dial": 2}).json()
    assert (item["title"], item["group"], len(item["similar"])) == ("Title of i00000", "popular", 10)
    assert 0 < item["in_lists"] <= item["sampled_users"] == 120
    user = client.get("/users/u00003").json()
    taken = model.train.item[model.train.user == 3]
    assert {one["id"] for one in user["taken"]} == set(model.item_ids.gather(taken).to_list())
    results = client.get("/search", params={"q": "u0001"}).json()["results"]
    assert [one["id"] for one in results] == [f"u{number:05d}" for number in range(10, 20)]
    results = client.get("/search", params={"kind": "item", "q": "OF i0000"}).json()["results"]
    assert [one["id"] for one in results] == [f"i{number:05d}" for number in range(10)]
    numbers = {dial: client.get("/audit", params={"dial": dial}).json() for dial in (-2, 0, 2)}
    assert numbers[-2]["arp@20"] < numbers[0]["arp@20"] < numbers[2]["arp@20"]
    assert numbers[-2]["aplt@20"] > numbers[2]["aplt@20"]
    assert 0 < numbers[2]["coverage@20"] <= 1
    about = client.get("/about").json()
    assert (about["users"], about["items"], len(about["dial"]["curve"])) == (120, 400, 5)
    assert {one["name"] for one in about["rerankers"]} >= {"dial", "xquad"}
    assert about["columns"] == ["title", "colour", "tags"]


def test_what_the_page_shows_of_rerankers_and_of_a_choice(served: Served, model: Model) -> None:
    client = served()
    strengths = ("0", "0.3", "0.6")
    how = [{"dial": 2, "rerank": f"fa-ir,strength={one}"} for one in strengths]
    lists = [client.get("/audit", params=one).json() for one in how]
    assert lists[0] == client.get("/audit", params={"dial": 2}).json()
    assert lists[0]["aplt@20"] < lists[1]["aplt@20"] < lists[2]["aplt@20"]
    check_problem(client.get("/audit", params={"rerank": "tests.plugin:Mine"}), 400, "cannot load a class")
    check_problem(client.get("/audit", params={"rerank": "fairrec", "k": 1}), 400, "rank more users")
    about = client.get("/about").json()
    known = {one["name"]: one["strength"] for one in about["rerankers"]}
    assert (known["xquad"], known["dial"], about["choice"]) == (0.3, None, None)

    def choice(**changed: Any) -> Any:
        made = drawn_choice(changed.pop("baseline", "lightgcn"))
        made["debias"] |= changed
        return served(replace(model, manifest=model.manifest | made)).get("/about").json()["choice"]

    found = choice()
    assert found["before"] == {"name": "lightgcn", "dial": 2.0, "rerank": "none"}
    assert found["accuracy"] == {"metric": "ndcg@20", "values": [0.25, 0.24]}
    own = drawn_choice()["debias"]["base"] | {"popularity_dial": -0.2, "rerank": {"name": "pc", "settings": {}}}
    assert choice(base=own)["before"] == {
        "name": "lightgcn",
        "dial": -0.2,
        "rerank": "pc,depth=all,strength=0.1,score_share=0.1",
    }
    other = choice(baseline="ease")
    assert other["before"] == {"name": "lightgcn", "dial": 0.0, "rerank": "none"}, "its model's own lists"
    assert (other["after"], other["accuracy"]) == ("lightgcn + fa-ir 0.6", None)
    assert choice(base={"name": "lightgcn"}) is None
    assert choice(base=own | {"rerank": {"name": "gone"}}) is None


def check_problem(answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert content["status"] == status
    assert words in content["detail"], content
    assert "\n" not in content["detail"]


PATHS = [
    ("recommend/u00001?k=0", 400, "k: input should be greater than or equal to 1, got '0'"),
    ("recommend/u00001?k=1001", 400, "k: input should be less than or equal to 1000"),
    ("recommend/u00001?colour=red", 400, "colour: extra inputs are not permitted"),
    ("recommend/u00001?dial=far", 400, "the popularity dial must be `run` or a number"),
    ("recommend/u00001?rerank=nobody", 400, "nobody"),
    ("recommend/u00001?rerank=os:system", 400, "a request cannot load a class"),
    ("recommend/u00001?allow=i00001&exclude=i00001", 400, "no item is left to recommend"),
    ("recommend/" + "u" * 1001, 400, "user: string should have at most 1000 characters"),
    ("similar/nowhere", 404, "there is no 'nowhere'"),
    ("search?kind=thing", 400, "kind: input should be 'user' or 'item'"),
    ("nothing", 404, "Not Found"),
    ("recommend", 405, "Method Not Allowed"),
]
BODIES = [
    (b"{", 400, "not readable JSON"),
    (b"[" * 100_000, 400, "the body"),
    (b"{}", 400, "give either users or histories"),
    (b'{"users": [true]}', 400, "users.0"),
    (b'{"users": [184467440737095516150]}', 400, "users.0"),
    (b'{"users": ["\\ud800"]}', 400, "users.0"),
    (b'{"users": ["u00001"], "k": 1.5}', 400, "k: input should be a valid integer"),
    (b'{"users": [null]}', 400, "users.0: an id is an integer of 64 bits or a text of"),
    (b'{"users": ["u00001"], "at_most": {"colour": 0}}', 400, "at_most.colour: input should be greater"),
    (b'{"users": ["u00001"], "at_most": {"smell": 2}}', 400, "the items have no column 'smell'"),
    (b'{"users": ["u00001"], "only": {"colour": "pink"}}', 400, "no item has 'pink' in column 'colour'"),
    (b'{"users": [' + b'"u00001",' * 100 + b'"u00001"]}', 400, "users: list should have at most 100 items"),
    (b'{"histories": [[' + b"1," * 1000 + b"1]]}", 400, "histories.0: list should have at most 1000 items"),
    (b"x" * 1_000_001, 413, "1,000,000 bytes"),
]


def test_mistakes_are_answered_with_one_sentence(served: Served) -> None:
    client = served()
    for path, status, words in PATHS:
        check_problem(client.get(f"/{path}"), status, words)
    for body, status, words in BODIES:
        answer = client.post("/recommend", content=body, headers={"content-type": "application/json"})
        check_problem(answer, status, words)
    check_problem(client.post("/recommend", content=b'{"users": ["u00001"]}'), 400, "Content-Type: application/json")


def test_a_token_is_needed_where_there_is_one_and_for_a_reload(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda *sent: signals.append(sent))
    check_problem(served().post("/reload"), 403, "needs a token")
    client = served(token=TOKEN)
    assert client.get("/health").status_code == client.get("/ready").status_code == client.get("/").status_code == 200
    for path in ("/recommend/u00001", "/metrics", "/openapi.json", "/about"):
        check_problem(client.get(path, headers={"Authorization": "Bearer wrong"}), 401, "Bearer")
        assert client.get(path, headers=KEY).status_code == 200
    check_problem(client.post("/reload"), 401, "Bearer")
    assert not signals
    assert client.post("/reload", headers=KEY).status_code == 202
    assert signals == [(os.getppid(), signal.SIGHUP)]


def test_other_origins_only_if_allowed(served: Served) -> None:
    client = served(allow_origin=("https://shop.example",), token=TOKEN)
    ours, theirs = {"Origin": "https://shop.example"}, {"Origin": "https://evil.example"}
    for key in ({}, KEY):  # a page must be able to read that a token is needed
        answer = client.get("/about", headers=ours | key)
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
    assert "access-control-allow-origin" not in client.get("/about", headers=theirs | KEY).headers
    asked = ours | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Authorization"}
    assert client.options("/recommend", headers=asked).status_code == 200
    assert client.options("/recommend", headers=asked | theirs).status_code == 400


def test_a_late_answer_and_a_failure_are_problems(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served()

    async def fail(_query: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("dpaa.serving._middleware.TIMEOUT", 0.05)
    monkeypatch.setattr(client.app.state.service.batcher, "ask", lambda _query: asyncio.sleep(5))  # type: ignore[attr-defined]
    late = client.get("/recommend/u00001")
    check_problem(late, 503, "timed out")
    assert late.headers["retry-after"] == "1"
    monkeypatch.setattr(client.app.state.service.batcher, "ask", fail)  # type: ignore[attr-defined]
    answer = client.get("/recommend/u00001")
    check_problem(answer, 500, "has been logged")
    assert "secret" not in answer.text


def test_a_full_queue_refuses_at_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served(most_waiting=5)
    check_problem(client.post("/recommend", json={"users": 6 * ["u00001"]}), 503, "retry in a second")
    assert client.post("/recommend", json={"users": 5 * ["u00001"]}).status_code == 200
    monkeypatch.setattr(client.app.state.service.batcher, "_most_waiting", 0)  # type: ignore[attr-defined]
    refused = client.get("/recommend/u00001?k=wrong")  # before the request is read
    check_problem(refused, 503, "retry in a second")
    assert refused.headers["retry-after"] == "1"
    check_problem(client.get("/ready"), 503, "overloaded")
    assert client.get("/health").status_code == 200


def test_counters(served: Served) -> None:
    client = served()
    for number in range(5):
        client.get(f"/recommend/u{number:05d}")
    client.get("/similar/nowhere")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    text = answer.text
    assert text.endswith("# EOF\n")
    assert 'dpaa_requests_total{route="recommend",status="200"} 5.0' in text
    assert 'dpaa_requests_total{route="similar",status="404"} 1.0' in text
    assert 'dpaa_request_seconds_count{route="recommend"} 5.0' in text
    assert "dpaa_batch_size_count 5.0" in text
    assert "dpaa_served_items_total 100.0" in text
    popular = next(line for line in text.splitlines() if line.startswith("dpaa_served_popular_items_total "))
    assert 0 < float(popular.split()[1]) < 100


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    said = run_dpaa("serve", "run")
    assert (said.code, "pip install 'dpaa[serve]'" in said.err) == (2, True)


def test_a_used_port_is_refused() -> None:
    with listen("127.0.0.1", 0) as busy, pytest.raises(InputError, match="cannot listen"):
        listen("127.0.0.1", busy.getsockname()[1])
