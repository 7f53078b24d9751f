"""The service over HTTP: routes, and what each answers.  `guard.py` stands before it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from dpaa.runs.lists import POPULARITY
from dpaa.serving import asked
from dpaa.serving.about import about
from dpaa.serving.batcher import Batcher, OverloadedError, all_or_first_error
from dpaa.serving.engine import Answer, Ask, answer
from dpaa.serving.explain import explained
from dpaa.serving.guard import Guard, Handler
from dpaa.serving.live import live_page
from dpaa.serving.lookup import Id
from dpaa.serving.metrics import Metrics
from dpaa.serving.openapi import openapi
from dpaa.serving.problems import ProblemError
from dpaa.serving.sample import Lists, lists_of, sample_asks, sampled_users
from dpaa.serving.settings import ServeSettings
from dpaa.serving.snapshot import Snapshot


class _AnyId(Convertor[str]):
    """An id in a path: whatever text it is, slashes and line ends included."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _AnyId())
Reload = Callable[[], Awaitable[str]]
LISTS = ("k", "dial", "rerank", "explain")
REPEATED = ("exclude", "allow", "only", "at_most", "at_least")
MOST_FOUND = 50
"""Answers of a search, takers of an item, items of a user's history that are shown."""
KEPT_SAMPLES = 64
INLINE = 500_000
"""Numbers of the item table up to which a batch is computed between two turns of the event loop."""


class Service:
    """What the routes answer; the snapshot in use can be exchanged at any moment."""

    def __init__(
        self, settings: ServeSettings, snapshot: Snapshot, metrics: Metrics, reload: Reload | None = None
    ) -> None:
        self.settings, self.metrics, self._reload = settings, metrics, reload
        self.snapshot = snapshot
        self.stopping = False
        self.batcher: Batcher[Ask, Answer] = Batcher(
            answer, settings.most_waiting, settings.most_together, self._is_small, metrics.batch
        )
        self._samples: dict[tuple[str, float, int], Lists] = {}
        self._sampling = asyncio.Lock()

    def _is_small(self) -> bool:
        table = self.snapshot.plain
        return table is not None and table.rows.numel() <= INLINE

    def take(self, snapshot: Snapshot) -> None:
        """Answer from this one from now on; who has asked of the old one is answered from the old one."""
        self.snapshot = snapshot
        self._samples.clear()
        self.metrics.reloaded()

    # ------------------------------------------------------------------ lists

    async def recommend(self, request: Request) -> Response:
        """One user."""
        snapshot = self.snapshot
        given = asked.only(request.query_params.multi_items(), LISTS, REPEATED)
        how = asked.wanted(snapshot, self.settings, given)
        user = request.path_params["user"]
        index = asked.user_index(snapshot, user)
        ask = _of_user(snapshot, how, index)
        found = await self._answers([ask])
        shown_id = snapshot.users.id(index) if index >= 0 else user
        return _json({**self._about(snapshot, how), **self._list(shown_id, ask, found[0], how)})

    async def recommend_many(self, request: Request) -> Response:
        """Many users, or histories of people never seen."""
        snapshot = self.snapshot
        asked.only(request.query_params.multi_items(), ())
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ProblemError(415, "the body must be application/json")
        given = asked.body(await self._body(request), self.settings)
        how = asked.wanted(snapshot, self.settings, given.model_dump(exclude={"users", "histories"}, exclude_none=True))
        asks, shown_ids = [], []
        for one in given.users or ():
            index = asked.user_index(snapshot, one)
            asks.append(_of_user(snapshot, how, index))
            shown_ids.append(one)
        for number, items in enumerate(given.histories or ()):
            known = asked.history(list(items), snapshot, self.settings)
            asks.append(how.ask(snapshot, kind="history", history=known) if len(known) else _unknown(snapshot, how))
            shown_ids.append(number)
        found = await self._answers(asks)
        name = "users" if given.users is not None else "histories"
        key = "user" if name == "users" else "history"
        lists = [
            self._list(one, ask, answer, how, key) for one, ask, answer in zip(shown_ids, asks, found, strict=True)
        ]
        return _json({**self._about(snapshot, how), "lists": lists})

    async def similar(self, request: Request) -> Response:
        """Items like one."""
        snapshot = self.snapshot
        given = asked.only(request.query_params.multi_items(), ("k",))
        k = asked.whole(given.get("k", 10), "k", self.settings.most_k)
        index = asked.item_index(snapshot, request.path_params["item"])
        return _json(
            {
                "item": snapshot.items.id(index),
                "snapshot": snapshot.name,
                "items": await self._similar(snapshot, index, k),
            }
        )

    async def _similar(self, snapshot: Snapshot, index: int, k: int) -> list[dict[str, Any]]:
        found = await self._answers([Ask(snapshot, k, kind="similar", number=index)])
        return _rows(snapshot, found[0])

    def _about(self, snapshot: Snapshot, how: asked.Wanted) -> dict[str, Any]:
        name = None if how.reranker is None else how.reranker.in_words()
        return {"dial": how.kappa, "rerank": name, "snapshot": snapshot.name}

    def _list(self, who: Id, ask: Ask, found: Answer, how: asked.Wanted, key: str = "user") -> dict[str, Any]:
        rows = _rows(ask.snapshot, found)
        if how.explain:
            for row, reason in zip(rows, explained(ask, found), strict=True):
                row["explanation"] = reason
        if ask.kind != "popular":
            self.metrics.served(ask.snapshot.name, ask.snapshot.head, ask.kappa, found.items)
        return {key: who, "fallback": POPULARITY if ask.kind == "popular" else None, "items": rows}

    async def _answers(self, asks: Sequence[Ask]) -> list[Answer]:
        self.metrics.waiting(self.batcher.waiting + len(asks))
        if self.batcher.waiting + len(asks) > self.settings.most_waiting:
            raise OverloadedError
        if len(asks) == 1:
            return [await self.batcher.ask(asks[0])]
        found = await asyncio.gather(*(self.batcher.ask(one) for one in asks), return_exceptions=True)
        return all_or_first_error(found)

    async def _body(self, request: Request) -> bytes:
        content = bytearray()
        try:
            async for part in request.stream():
                content += part
                if len(content) > self.settings.most_bytes:
                    raise ProblemError(413, f"the body is larger than {self.settings.most_bytes:,} bytes")
        except ClientDisconnect:
            raise ProblemError(400, "the body ended early") from None
        return bytes(content)

    # ------------------------------------------------------------------ items, users, the whole

    async def item(self, request: Request) -> Response:
        """One item: how popular, who gets it, what is like it."""
        snapshot = self.snapshot
        given = asked.only(request.query_params.multi_items(), ("dial", "k"))
        index = asked.item_index(snapshot, request.path_params["item"])
        k = asked.whole(given.get("k", 20), "k", self.settings.most_k)
        lists = await self._sample(snapshot, asked.kappa(snapshot, given.get("dial")), k)
        number, some = lists.who_gets(index, MOST_FOUND)
        return _json(
            {
                **snapshot.items.shown([index])[0],
                "interactions": int(snapshot.counts[index]),
                "group": "popular" if snapshot.popular[index] else "niche",
                "popularity_rank": int(np.count_nonzero(snapshot.counts > snapshot.counts[index])) + 1,
                "recommended": {
                    "dial": lists.kappa,
                    "k": k,
                    "sampled_users": len(lists.users),
                    "in_lists": number,
                    "users": [snapshot.users.id(user) for user in some],
                },
                "similar": await self._similar(snapshot, index, 10) if snapshot.unit is not None else [],
                "snapshot": snapshot.name,
            }
        )

    async def user(self, request: Request) -> Response:
        """One user: what he took."""
        snapshot = self.snapshot
        asked.only(request.query_params.multi_items(), ())
        given = request.path_params["user"]
        index = asked.user_index(snapshot, given)
        if index < 0:
            raise ProblemError(404, f"there is no user {given[:80]!r} in this run")
        taken = snapshot.taken(index)
        return _json(
            {
                "id": snapshot.users.id(index),
                "interactions": len(taken),
                "taken": described(snapshot, taken[np.argsort(-snapshot.counts[taken], kind="stable")][:MOST_FOUND]),
                "snapshot": snapshot.name,
            }
        )

    async def search(self, request: Request) -> Response:
        """Users by the beginning of their id, items by that or by words of their title."""
        snapshot = self.snapshot
        given = asked.only(request.query_params.multi_items(), ("kind", "q"))
        kind, words = given.get("kind", "user"), given.get("q", "")
        if kind not in ("user", "item"):
            raise asked.refuse(f"kind must be user or item, got {kind[:60]!r}")
        if len(words) > 200:
            raise asked.refuse("q is longer than 200 characters")
        table = snapshot.users if kind == "user" else snapshot.items
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, table.search, words, MOST_FOUND)
        return _json({"kind": kind, "found": table.shown(found), "snapshot": snapshot.name})

    async def audit(self, request: Request) -> Response:
        """How popular and varied the lists of a sample are, at some κ."""
        snapshot = self.snapshot
        given = asked.only(request.query_params.multi_items(), ("dial", "k"))
        k = asked.whole(given.get("k", 20), "k", self.settings.most_k)
        lists = await self._sample(snapshot, asked.kappa(snapshot, given.get("dial")), k)
        content = {"dial": lists.kappa, "k": k, "sampled_users": len(lists.users), "numbers": lists.numbers()}
        return _json({**content, "snapshot": snapshot.name})

    async def _sample(self, snapshot: Snapshot, kappa: float, k: int) -> Lists:
        """Kept while the snapshot is; one is made at a time, a batch after the other, so that others get their turn."""
        key = (snapshot.name, kappa, k)
        if key in self._samples:
            return self._samples[key]
        async with self._sampling:
            if key not in self._samples:
                users, found = sampled_users(snapshot), []
                asks = sample_asks(snapshot, users, kappa, k)
                step = max(1, self.settings.most_together // 2)
                for first in range(0, len(asks), step):
                    found += await self._answers(asks[first : first + step])
                while len(self._samples) >= KEPT_SAMPLES:
                    self._samples.pop(next(iter(self._samples)))
                self._samples[key] = lists_of(snapshot, users, kappa, k, found)
            return self._samples[key]

    # ------------------------------------------------------------------ the service itself

    async def about(self, request: Request) -> Response:
        """What is served."""
        asked.only(request.query_params.multi_items(), ())
        return _json(about(self.snapshot, self.settings))

    async def health(self, _request: Request) -> Response:
        """The process lives."""
        return _json({"status": "alive"})

    async def ready(self, _request: Request) -> Response:
        """It can take requests now."""
        if self.stopping or self.batcher.waiting >= self.settings.most_waiting:
            raise ProblemError(503, "stopping or full; ask another worker", {"Retry-After": "1"})
        return _json({"status": "ready", "snapshot": self.snapshot.name})

    async def counters(self, _request: Request) -> Response:
        """OpenMetrics."""
        self.metrics.waiting(self.batcher.waiting)
        text = self.metrics.text(self.snapshot.name, len(self.snapshot.items))
        return Response(text, media_type="application/openmetrics-text; version=1.0.0; charset=utf-8")

    async def openapi(self, _request: Request) -> Response:
        """The description of all this."""
        return _json(openapi(self.settings))

    async def page(self, _request: Request) -> Response:
        """The live page."""
        html, policy = live_page()
        return Response(html, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})

    async def reload(self, request: Request) -> Response:
        """Read the run again."""
        asked.only(request.query_params.multi_items(), ())
        if self.settings.token is None or self._reload is None:
            raise ProblemError(403, "reloading needs a token; start the service with --token-file FILE")
        begun = time.perf_counter()
        name = await self._reload()
        return _json({"snapshot": name, "seconds": round(time.perf_counter() - begun, 3)})

    def app(self) -> Any:
        """The whole as an ASGI application."""

        def route(path: str, handler: Handler, name: str, method: str = "GET") -> Route:
            seconds = None if name == "reload" else self.settings.timeout
            return Route(path, guard.handled(handler, name, seconds), methods=[method])

        @contextlib.asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            yield
            self.batcher.close()

        guard = Guard(self.settings, self.metrics)
        routes = [
            route("/recommend/{user:id}", self.recommend, "recommend"),
            route("/recommend", self.recommend_many, "recommend_many", "POST"),
            route("/similar/{item:id}", self.similar, "similar"),
            route("/items/{item:id}", self.item, "items"),
            route("/users/{user:id}", self.user, "users"),
            route("/search", self.search, "search"),
            route("/audit", self.audit, "audit"),
            route("/about", self.about, "other"),
            route("/health", self.health, "other"),
            route("/ready", self.ready, "other"),
            route("/metrics", self.counters, "other"),
            route("/openapi.json", self.openapi, "other"),
            route("/", self.page, "page"),
            route("/reload", self.reload, "reload", "POST"),
        ]
        return guard.before(Starlette(routes=routes, lifespan=lifespan, exception_handlers=guard.handlers()))


def _of_user(snapshot: Snapshot, how: asked.Wanted, index: int) -> Ask:
    """The model's list for a user with training pairs, the popularity list for any other."""
    warm = index >= 0 and len(snapshot.taken(index)) > 0
    return how.ask(snapshot, number=index) if warm else _unknown(snapshot, how)


def _unknown(snapshot: Snapshot, how: asked.Wanted) -> Ask:
    return how.ask(snapshot, kind="popular")


def _rows(snapshot: Snapshot, found: Answer) -> list[dict[str, Any]]:
    rows = snapshot.items.shown(found.items.tolist())
    for rank, (row, score) in enumerate(zip(rows, found.scores.tolist(), strict=True), 1):
        row["score"], row["rank"] = score, rank
    return rows


def described(snapshot: Snapshot, items: Any) -> list[dict[str, Any]]:
    """Items with how popular they are."""
    rows = snapshot.items.shown(np.asarray(items).tolist())
    for row, item in zip(rows, np.asarray(items).tolist(), strict=True):
        row["interactions"] = int(snapshot.counts[item])
        row["group"] = "popular" if snapshot.popular[item] else "niche"
    return rows


def _json(content: dict[str, Any]) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
