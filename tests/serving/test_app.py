"""The service over HTTP: its answers are the library's, and whatever is wrong with a request gets one sentence."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from dpaa.runs.model import Model
from tests.serving.conftest import Served

TOKEN = "0123456789abcdef0123"
KEY = {"Authorization": f"Bearer {TOKEN}"}


def check_list(content: dict[str, Any], frame: Any, name: str = "item_id") -> None:
    """The library's items in the library's order; scores may differ in the last bits of a batch."""
    assert [row["id"] for row in content["items"]] == frame[name].to_list()
    assert [row["score"] for row in content["items"]] == pytest.approx(frame["score"].to_list(), rel=1e-5, abs=1e-5)
    assert [row["rank"] for row in content["items"]] == list(range(1, len(frame) + 1))


LISTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"k": 7, "dial": "run"}, {}),
    ({"dial": -0.5}, {"popularity_dial": -0.5}),
    ({"exclude": ["i00003", "i00050", "nowhere"]}, {"exclude": ["i00003", "i00050"]}),
    ({"allow": ["i00003", "i00120"], "dial": 1}, {"items": ["i00003", "i00120"], "popularity_dial": 1}),
    ({"rerank": "dial,kappa=-0.4"}, {"rerank": "dial,kappa=-0.4"}),
    ({"rerank": "none"}, {"rerank": None}),
    ({"at_most": ["colour=2", "tags=5"], "k": 6}, {"at_most": {"colour": 2, "tags": 5}}),
    (
        {"at_least": "tags=9", "only": ["colour=red", "colour=blue"], "dial": -1, "exclude": "i00001"},
        {"at_least": {"tags": 9}, "only": {"colour": ["red", "blue"]}, "popularity_dial": -1, "exclude": ["i00001"]},
    ),
    ({"at_most": "tags=3", "rerank": "xquad", "k": 5}, {"at_most": {"tags": 3}, "rerank": "xquad"}),
]


@pytest.mark.parametrize(("query", "how"), LISTS)
def test_lists_equal_the_library(served: Served, model: Model, query: dict[str, Any], how: dict[str, Any]) -> None:
    client = served()
    for user in ("u00000", "u00017", "u00119"):
        content = client.get(f"/recommend/{user}", params=query).json()
        assert (content["user"], content["fallback"]) == (user, None)
        check_list(content, model.recommend([user], query.get("k", 20), **how))


def test_many_users_and_histories(served: Served, model: Model) -> None:
    client = served()
    users = [f"u{number:05d}" for number in range(40)]
    content = client.post("/recommend", json={"users": users, "k": 5, "dial": -1}).json()
    assert [one["user"] for one in content["lists"]] == users
    for user, one in zip(users, content["lists"], strict=True):
        check_list(one, model.recommend([user], 5, popularity_dial=-1))
    histories = [["i00003", "i00009"], ["i00001", "nowhere"], ["nowhere"]]
    lists = client.post("/recommend", json={"histories": histories, "k": 5}).json()["lists"]
    check_list(lists[0], model.recommend_for(["i00003", "i00009"], 5))
    check_list(lists[1], model.recommend_for(["i00001"], 5))
    assert [one["fallback"] for one in lists] == [None, None, "popularity"]


def test_an_unknown_user_gets_the_popularity_list(served: Served, model: Model) -> None:
    client = served()
    for asked in ({}, {"dial": -0.7}, {"exclude": "i00000"}, {"allow": ["i00003", "i00007", "nowhere"], "dial": 1}):
        content = client.get("/recommend/nobody", params={"k": 3, **asked}).json()
        assert content["fallback"] == "popularity"
        found = model.recommend(
            ["nobody"],
            3,
            popularity_dial=asked.get("dial"),  # type: ignore[arg-type]
            exclude=[asked["exclude"]] if "exclude" in asked else (),
            items=asked.get("allow"),  # type: ignore[arg-type]
        )
        assert found["source"].to_list() == ["popularity"] * len(found)
        check_list(content, found)


def test_limits_by_column_for_many_and_for_an_unknown_user(served: Served, model: Model) -> None:
    client = served()
    how: dict[str, Any] = {"at_most": {"colour": 1}, "at_least": {"tags": 4}, "only": {"tags": ["t0", "t1", "t2"]}}
    asked = ["u00000", "nobody", "u00017"]
    lists = client.post("/recommend", json={"users": asked, "k": 3, **how}).json()["lists"]
    for user, one in zip(asked, lists, strict=True):
        check_list(one, model.recommend([user], 3, **how))
    (one,) = client.post("/recommend", json={"histories": [["i00003"]], "k": 3, **how}).json()["lists"]
    check_list(one, model.recommend_for(["i00003"], 3, **how))
    (one,) = client.post("/recommend", json={"users": ["nobody"], "only": {"colour": "red"}, "k": 4}).json()["lists"]
    check_list(one, model.recommend(["nobody"], 4, only={"colour": "red"}))


def test_similar_items_and_titles(served: Served, model: Model) -> None:
    content = served().get("/similar/i00003", params={"k": 6}).json()
    check_list(content, model.similar_items(["i00003"], 6), "similar_item_id")
    assert all("title" in row for row in content["items"])


def test_explanations(served: Served, model: Model) -> None:
    content = served().get("/recommend/u00003", params={"explain": "true", "dial": -0.5, "k": 5}).json()
    frame = model.recommend(["u00003"], 400, popularity_dial=0)
    plain = dict(zip(frame["item_id"], frame["score"], strict=True))
    taken = {model.item_ids[item] for item in model.train.item[model.train.user == 3].tolist()}
    for row in content["items"]:
        why = row["explanation"]
        assert why["group"] in ("popular", "niche")
        assert set(why["because"]) <= taken
        assert plain[row["id"]] + why["dial_part"] == pytest.approx(row["score"], abs=1e-4)


def test_items_users_search_audit_and_about(served: Served, model: Model) -> None:
    client = served()
    item = client.get("/items/i00000", params={"dial": 2}).json()
    assert item["title"] == "Title of i00000"
    assert item["popularity_rank"] == 1
    assert item["recommended"]["in_lists"] == len(item["recommended"]["users"]) or item["recommended"]["in_lists"] > 50
    user = client.get("/users/u00003").json()
    taken = model.train.item[model.train.user == 3]
    assert {one["id"] for one in user["taken"]} == set(model.item_ids.gather(taken).to_list())
    found = client.get("/search", params={"q": "u0001"}).json()["found"]
    assert [one["id"] for one in found] == [f"u{number:05d}" for number in range(10, 20)]
    found = client.get("/search", params={"kind": "item", "q": "of i0000"}).json()["found"]
    assert [one["id"] for one in found] == [f"i{number:05d}" for number in range(10)]
    numbers = {dial: client.get("/audit", params={"dial": dial}).json()["numbers"] for dial in (-2, 0, 2)}
    assert numbers[-2]["arp@20"] < numbers[0]["arp@20"] < numbers[2]["arp@20"]
    assert numbers[-2]["aplt@20"] > numbers[2]["aplt@20"]
    about = client.get("/about").json()
    assert (about["users"], about["items"], len(about["dial"]["curve"])) == (120, 400, 5)
    assert {one["name"] for one in about["rerankers"]} >= {"dial"}
    assert about["columns"] == ["colour", "tags"]


def check_problem(answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert content["status"] == status
    assert words in content["detail"], content
    assert "\n" not in content["detail"]


PATHS = [
    ("recommend/u00001?k=0", 400, "k must be a whole number from 1 to 200, got '0'"),
    ("recommend/u00001?k=1_0", 400, "k must be a whole number from 1 to 200, got '1_0'"),
    ("recommend/u00001?k=%D9%A3", 400, "k must be a whole number from 1 to 200, got '٣'"),
    ("recommend/u00001?k=201", 400, "k must be a whole number from 1 to 200, got 201"),
    ("recommend/u00001?k=5&k=6", 400, "'k' is given twice"),
    ("recommend/u00001?colour=red", 400, "there is no parameter 'colour'; known here: k, dial"),
    ("about?k=1", 400, "there is no parameter 'k'; known here: none"),
    ("recommend/u00001?dial=nan", 400, "dial must be run or a number, got 'nan'"),
    ("recommend/u00001?dial=1_0", 400, "dial must be run or a number, got '1_0'"),
    ("recommend/u00001?dial=1e9", 400, "from −1000 to 1000"),
    ("recommend/u00001?explain=maybe", 400, "explain must be true or false, got 'maybe'"),
    ("recommend/u00001?rerank=nobody", 400, "nobody"),
    ("recommend/u00001?rerank=os:system", 400, "a request names no class"),
    ("recommend/u00001?allow=nowhere", 400, "no item of allow is known"),
    ("recommend/u00001?allow=i00001&exclude=i00001", 400, "no item is left to recommend"),
    ("recommend/u00001?at_most=colour", 400, "at_most takes COLUMN=N with N from 1, got 'colour'"),
    ("recommend/u00001?at_most=colour=" + "9" * 5000, 400, "at_most.0: string should have at most 1000"),
    ("recommend/u00001?at_most=smell=2", 400, "the items have no column 'smell'; they have 'colour', 'tags'"),
    ("recommend/u00001?only=colour=pink", 400, "no item has 'pink' in column 'colour'"),
    ("recommend/u00001?only=colour=red&allow=i00001", 400, "no item is left to recommend"),
    ("recommend/u00001?" + "at_most=a=1&" * 21, 400, "at_most: list should have at most 20 items"),
    ("recommend/" + "u" * 1001, 400, "an id has 1,001 characters"),
    ("similar/nowhere", 404, "there is no item 'nowhere'"),
    ("users/nobody", 404, "there is no user 'nobody'"),
    ("search?kind=thing", 400, "kind must be user or item"),
    ("nothing", 404, "see /openapi.json"),
    ("recommend", 405, "another method"),
]
BODIES = [
    (b"{", 400, "not readable JSON"),
    (b"[" * 100_000, 400, "not readable JSON"),
    (b"[]", 400, "the body"),
    (b"{}", 400, "give either users or histories"),
    (b'{"users": ["u00001"], "histories": [["i00001"]]}', 400, "give either users or histories"),
    (b'{"users": []}', 400, "users: list should have at least 1 item"),
    (b'{"users": [true]}', 400, "users.0"),
    (b'{"users": [184467440737095516150]}', 400, "users.0"),
    (b'{"users": ["\\ud800"]}', 400, "users.0"),
    (b'{"users": ["u00001"], "k": 1.5}', 400, "k must be a whole number from 1 to 200, got 1.5"),
    (b'{"users": ["u00001"], "colour": 1}', 400, "colour"),
    (b'{"users": ["u00001"], "dial": "far"}', 400, "dial must be run or a number"),
    (b'{"users": ["u00001"], "dial": true}', 400, "dial must be run or a number"),
    (b'{"users": ["u00001"], "at_most": {"colour": 0}}', 400, "at_most.colour: it should be greater"),
    (b'{"users": ["u00001"], "only": {"colour": 1}}', 400, "only.colour"),
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
    other = client.post("/recommend", content=b"{}", headers={"content-type": "text/plain"})
    check_problem(other, 415, "application/json")


def test_a_token_is_needed_where_there_is_one(served: Served) -> None:
    client = served(token=TOKEN)
    assert client.get("/health").status_code == client.head("/health").status_code == client.get("/").status_code == 200
    for path in ("/recommend/u00001", "/metrics", "/openapi.json", "/about"):
        check_problem(client.get(path), 401, "Bearer")
        check_problem(client.get(path, headers={"Authorization": "Bearer wrong"}), 401, "Bearer")
        assert client.get(path, headers=KEY).status_code == 200


def test_a_reload_needs_a_token_in_any_case(served: Served) -> None:
    check_problem(served().post("/reload"), 403, "needs a token")
    client = served(token=TOKEN)
    check_problem(client.post("/reload"), 401, "Bearer")
    assert client.post("/reload", headers=KEY).json()["snapshot"] == client.get("/ready").json()["snapshot"]


def test_host_names(served: Served) -> None:
    client = served(allow_host=("shop.example",))
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80"):
        check_problem(client.get("/about", headers={"Host": host}), 421, "--allow-host")
        assert served(any_host=True).get("/about", headers={"Host": host}).status_code == 200
    for host in ("localhost:8000", "127.0.0.1", "[::1]:9", "shop.example", "Shop.Example:443"):
        assert client.get("/about", headers={"Host": host}).status_code == 200


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


def test_the_queue_is_bounded(served: Served) -> None:
    client = served(most_waiting=5)
    users = [f"u{number:05d}" for number in range(20)]
    answer = client.post("/recommend", json={"users": users})
    check_problem(answer, 503, "come again")
    assert answer.headers["retry-after"] == "1"
    assert client.post("/recommend", json={"users": users[:4]}).status_code == 200


def test_a_late_answer_and_a_failure_are_problems(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served(timeout=0.05)

    async def never(_asks: object) -> None:
        await asyncio.sleep(5)

    async def fail(_asks: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(client.app.state.service, "answers", never)  # type: ignore[attr-defined]
    late = client.get("/recommend/u00001")
    check_problem(late, 503, "took too long")
    assert late.headers["retry-after"] == "1"
    monkeypatch.setattr(client.app.state.service, "answers", fail)  # type: ignore[attr-defined]
    answer = client.get("/recommend/u00001")
    check_problem(answer, 500, "has been logged")
    assert "secret" not in answer.text


def test_counters(served: Served) -> None:
    client = served()
    for number in range(5):
        client.get(f"/recommend/u{number:05d}")
    client.get("/recommend/u00001", params={"dial": -0.5})
    client.get("/similar/nowhere")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    text = answer.text
    assert text.endswith("# EOF\n")
    assert 'dpaa_requests_total{route="recommend",status="2xx"} 6.0' in text
    assert 'dpaa_requests_total{route="similar",status="4xx"} 1.0' in text
    assert 'dpaa_request_seconds_count{route="recommend"} 6.0' in text
    assert "dpaa_batch_size_count 6.0" in text
    assert 'dpaa_served_items{dial="0"} 100.0' in text
    assert 'dpaa_served_items{dial="-1 to -0.25"} 20.0' in text
    assert 'dpaa_served_coverage{dial="-1 to -0.25"} 0.05' in text


def test_the_page_may_only_send_requests_to_its_service(served: Served) -> None:
    answer = served().get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in answer.text.replace("http-equiv", "")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_ids_may_be_any_text(served: Served) -> None:
    client: TestClient = served()
    for user in ("a/b", "ü 𝔘", "?", "#", "\u202e", "two\nlines", "\n"):
        content = client.get(f"/recommend/{quote(user, safe='')}").json()
        assert content["user"] == user
        assert content["fallback"] == "popularity"
