"""The FastAPI application: routes, and how requests become lists."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any, TypeVar

import numpy as np
import orjson
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

import dpaa
from dpaa.errors import InputError
from dpaa.runs.lists import POPULARITY, read_limits, read_only
from dpaa.serving import _models as models
from dpaa.serving._engine import NO_ITEMS, NOTHING_LEFT, Answer, Ask, Batcher, OverloadedError, answer, explain
from dpaa.serving._live import SampleLists, live_page, sample_asks, sampled_users
from dpaa.serving._middleware import LOG, PROBLEM, RETRY, Metrics, Middleware, overloaded, problem
from dpaa.serving._snapshot import Id, IdTable, Ints, Snapshot, about
from dpaa.serving.options import ServeOptions

MOST_SHOWN = 50
"""Results of a search, receivers of an item, items of a user's history."""
KEPT_SAMPLES = 64
INLINE = 500_000
"""Numbers of the item table up to which a batch is computed in the event loop."""
RULES = {"dial": "must be run or a number", "explain": "must be true or false", "kind": "must be user or item"}
SENTENCES = {
    "Not Found": "there is nothing here; see /openapi.json",
    "Method Not Allowed": "this path takes another method",
    "There was an error parsing the body": "the body is not readable JSON",
}
"""What Starlette and FastAPI say, in our words."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What is wrong", "content": {PROBLEM: {"schema": models.Problem.model_json_schema()}}},
    503: {
        "description": "Overloaded; come again",
        "headers": {"Retry-After": {"schema": {"type": "integer"}}},
        "content": {PROBLEM: {"schema": models.Problem.model_json_schema()}},
    },
}
T = TypeVar("T")


class _AnyId(Convertor[str]):
    """An id in a path: any text, slashes and line ends included."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", _AnyId())


class Service:
    """The snapshot that is served, its queue and its counters.

    Parameters
    ----------
    options : of `dpaa serve`
    snapshot : the first to serve
    read : reads the run again; called in a thread
    """

    def __init__(self, options: ServeOptions, snapshot: Snapshot, read: Callable[[ServeOptions], Snapshot]) -> None:
        self.options, self.snapshot, self._read = options, snapshot, read
        self.metrics = Metrics()
        self.metrics.lists.serve(snapshot.name, len(snapshot.items))
        self.batcher: Batcher[Ask, Answer] = Batcher(
            answer, options.most_waiting, options.most_together, self._is_small, self.metrics.batches.observe
        )
        self._samples: dict[tuple[str, float, int], SampleLists] = {}
        self._sampling = asyncio.Lock()
        self._reloading: asyncio.Task[str] | None = None
        self._reload_begun = asyncio.Event()

    def _is_small(self) -> bool:
        return self.snapshot.plain is not None and self.snapshot.plain.numel() <= INLINE

    async def answers(self, asks: Sequence[Ask]) -> list[Answer]:
        """Lists from the queue."""
        self.metrics.queue.set(self.batcher.waiting + len(asks))
        return await self.batcher.ask(*asks)

    async def sample(self, snapshot: Snapshot, kappa: float, k: int) -> SampleLists:
        """Lists of the sampled users, kept while the snapshot is; computed in small batches between requests."""
        key, step = (snapshot.name, kappa, k), max(1, self.options.most_together // 2)
        if key in self._samples:
            return self._samples[key]
        async with self._sampling:
            users, items = sampled_users(snapshot), []
            asks = sample_asks(snapshot, users, kappa, k)
            for first in range(0, len(asks), step):
                items += [one.items for one in await self.answers(asks[first : first + step])]
            while len(self._samples) >= KEPT_SAMPLES:
                self._samples.pop(next(iter(self._samples)))
            self._samples[key] = sample = SampleLists(snapshot, kappa, k, users, items)
            return sample

    # -------------------------------------------------------------- reload

    def start_reload(self) -> None:
        """Read the run again beside the one that is served; `SIGHUP` calls this in every worker."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.get_running_loop().create_task(self._reload())
        else:
            LOG.warning("a reload is on its way already; wait for it")
        self._reload_begun.set()

    async def _reload(self) -> str:
        try:
            snapshot = await asyncio.to_thread(self._read, self.options)
        except Exception as error:
            LOG.warning("the old run stays: %s", error, exc_info=not isinstance(error, InputError))
            reason = str(error) if isinstance(error, InputError) else "it could not be read; the log says why"
            raise HTTPException(409, f"the old run stays: {reason}") from None
        self.snapshot = snapshot  # requests that have begun keep the old one
        self._samples.clear()
        self.metrics.lists.serve(snapshot.name, len(snapshot.items))
        self.metrics.reloads.inc()
        LOG.warning("serving the run as it is now (%s)", snapshot.name)
        return snapshot.name

    async def reload(self) -> str:
        """Reload in every worker, and wait for this one; returns the name of the new snapshot."""
        if self._reloading is not None and not self._reloading.done():
            raise HTTPException(409, "a reload is on its way already; wait for it")
        self._reload_begun.clear()
        if multiprocessing.parent_process() is None:
            self.start_reload()
        else:
            os.kill(os.getppid(), signal.SIGHUP)  # the parent passes it to all workers
            await self._reload_begun.wait()
        assert self._reloading is not None
        return await asyncio.shield(self._reloading)

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """Follow `SIGHUP`, and end with the parent process, however it ended."""
        loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()
        with suppress(RuntimeError, ValueError):  # not in the main thread
            loop.add_signal_handler(signal.SIGHUP, self.start_reload)
        if parent is not None:
            loop.add_reader(parent.sentinel, self._orphaned, parent.sentinel)
        yield
        self.batcher.close()

    @staticmethod
    def _orphaned(sentinel: int) -> None:
        asyncio.get_running_loop().remove_reader(sentinel)
        signal.raise_signal(signal.SIGTERM)


# ------------------------------------------------------------------ from a request to a list


async def service_of(request: Request) -> Service:
    """The service of a request's application; a coroutine, since FastAPI runs plain functions in a thread."""
    service: Service = request.app.state.service
    return service


def length(service: Service, k: int) -> int:
    """k, if the service makes lists that long."""
    if k > service.options.most_k:
        raise HTTPException(400, f"k {_rule('k', service.options)}, got {k}")
    return k


def kappa_of(snapshot: Snapshot, dial: float | str | None) -> float:
    """Where the dial stands; without a wish where the run keeps it."""
    return snapshot.model.kappa(dial) + 0.0  # -0.0 is 0


def list_template(service: Service, snapshot: Snapshot, wish: models.RecommendQuery | models.RecommendBody) -> Ask:
    """What all lists of a request have in common."""
    model = snapshot.model
    if wish.rerank is not None and ":" in wish.rerank:
        raise HTTPException(
            400, f"a request names no class: {_short(wish.rerank)}; name a re-ranker that the service knows"
        )
    only: Any = wish.only
    limits: Any = (wish.at_most, wish.at_least)
    if isinstance(wish, models.RecommendQuery):
        only = read_only(wish.only, "only", "only=in_stock=true")
        limits = tuple(
            read_limits(given, name, f"{name}=genre=3")
            for given, name in ((wish.at_most, "at_most"), (wish.at_least, "at_least"))
        )
    allow = None if wish.allow is None else known(snapshot.items, wish.allow)
    if allow is not None and not len(allow):
        raise HTTPException(400, "no item of allow is known; give ids of the training log")
    if only:
        some = model.candidates if allow is None else allow
        allow = model.columns.allowed(only, np.arange(len(snapshot.items)) if some is None else np.asarray(some))
        if not len(allow):
            raise HTTPException(400, NOTHING_LEFT)
    return Ask(
        snapshot,
        length(service, wish.k),
        kind="popular",
        kappa=kappa_of(snapshot, wish.dial),
        exclude=known(snapshot.items, wish.exclude),
        allow=allow,
        reranker=model.reranker(wish.rerank or "run"),
        quotas=model.columns.quotas(*limits),
    )


def for_user(template: Ask, index: int) -> Ask:
    """The model's list for a user with training pairs, the popularity list for any other."""
    warm = index >= 0 and len(template.snapshot.taken(index)) > 0
    return Ask(**{**vars(template), "kind": "user", "number": index}) if warm else template


def for_history(template: Ask, items: Sequence[Id]) -> Ask:
    """The list of a history, the popularity list for one without a known item."""
    history = known(template.snapshot.items, items).astype(np.int32)
    return Ask(**{**vars(template), "kind": "history", "history": history}) if len(history) else template


def find(table: IdTable, given: Id) -> int:
    """The index of an id, -1 for an unknown one."""
    if isinstance(given, str):
        if len(given) > models.LONGEST_TEXT:
            raise HTTPException(400, f"an id has {len(given):,} characters, at most {models.LONGEST_TEXT:,} are taken")
        try:
            given.encode()
        except UnicodeEncodeError:
            raise HTTPException(400, f"the id {given!r} is not UTF-8 text") from None
    return table.find(given)


def find_item(snapshot: Snapshot, given: str) -> int:
    """The index of an item that must be there."""
    index = find(snapshot.items, given)
    if index < 0:
        raise HTTPException(404, f"there is no item {_short(given)} in this run")
    return index


def known(table: IdTable, given: Sequence[Id]) -> Ints:
    """Indices of the known ids, ascending and distinct; unknown ones cannot be recommended anyhow."""
    rows = [row for one in given if (row := find(table, one)) >= 0]
    return np.unique(np.array(rows, dtype=np.int64)) if rows else NO_ITEMS


def shown_list(service: Service, ask: Ask, listed: Answer, with_reasons: bool) -> dict[str, Any]:
    """`fallback` and `items` of an answer."""
    rows = item_rows(ask.snapshot, listed)
    if with_reasons:
        for row, reason in zip(rows, explain(ask, listed), strict=True):
            row["explanation"] = reason
    if ask.kind != "popular":
        service.metrics.lists.add(ask.snapshot.head, ask.kappa, listed.items)
    return {"fallback": POPULARITY if ask.kind == "popular" else None, "items": rows}


def item_rows(snapshot: Snapshot, listed: Answer) -> list[dict[str, Any]]:
    """Items with score and rank."""
    rows = snapshot.items.shown(listed.items.tolist())
    for rank, (row, score) in enumerate(zip(rows, listed.scores.tolist(), strict=True), 1):
        row["score"], row["rank"] = score, rank
    return rows


def how(template: Ask) -> dict[str, Any]:
    """What an answer says of the way its lists were made."""
    name = None if template.reranker is None else template.reranker.in_words()
    return {"dial": template.kappa, "rerank": name, "snapshot": template.snapshot.name}


def as_json(content: dict[str, Any]) -> Response:
    """An answer as it is: the types describe it in the OpenAPI document, and checking it again would only cost time."""
    return Response(orjson.dumps(content), media_type="application/json")


# ------------------------------------------------------------------ routes


async def check_parameters(request: Request) -> None:
    """Refuse unknown parameters and those given twice, which FastAPI would ignore."""
    query = PARAMETERS.get(request.scope["route"].name, {})
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in query:
            raise HTTPException(400, f"there is no parameter {name[:60]!r}; known here: {', '.join(query) or 'none'}")
        if names.count(name) > 1 and name not in REPEATED:
            raise HTTPException(400, f"the parameter {name!r} is given twice; give it once")


REPEATED = ("exclude", "allow", "only", "at_most", "at_least")
PARAMETERS: dict[str, Any] = {
    "recommend": models.RecommendQuery.model_fields,
    "similar": models.SimilarQuery.model_fields,
    "items": models.SampleQuery.model_fields,
    "audit": models.SampleQuery.model_fields,
    "search": models.SearchQuery.model_fields,
}
TheService = Annotated[Service, Depends(service_of)]
router = APIRouter(dependencies=[Depends(check_parameters)], responses=PROBLEMS)


@router.get("/recommend/{user:id}", name="recommend", response_model=models.RecommendAnswer)
async def recommend(user: str, query: Annotated[models.RecommendQuery, Query()], service: TheService) -> Response:
    """The best items for one user."""
    snapshot = service.snapshot
    template = list_template(service, snapshot, query)
    index = find(snapshot.users, user)
    ask = for_user(template, index)
    (listed,) = await service.answers([ask])
    own_id = snapshot.users.ids[index] if index >= 0 else user
    return as_json({**how(ask), "user": own_id, **shown_list(service, ask, listed, query.explain)})


@router.post("/recommend", name="recommend_many", response_model=models.RecommendManyAnswer)
async def recommend_many(body: models.RecommendBody, service: TheService) -> Response:
    """Lists for many users, or for histories of people the model has never met."""
    snapshot = service.snapshot
    template = list_template(service, snapshot, body)
    who: Sequence[Id] = body.users or range(len(body.histories or ()))
    asks = [for_user(template, find(snapshot.users, one)) for one in body.users or ()]
    asks += [for_history(template, items) for items in body.histories or ()]
    answers = await service.answers(asks)
    key = "user" if body.users else "history"
    lists = [
        {key: one, **shown_list(service, ask, listed, body.explain)}
        for one, ask, listed in zip(who, asks, answers, strict=True)
    ]
    return as_json({**how(template), "lists": lists})


@router.get("/similar/{item:id}", name="similar", response_model=models.SimilarAnswer)
async def similar(item: str, query: Annotated[models.SimilarQuery, Query()], service: TheService) -> Response:
    """Items like one, by cosine."""
    snapshot = service.snapshot
    k, index = length(service, query.k), find_item(snapshot, item)
    rows = await _similar(service, snapshot, index, k)
    return as_json({"item": snapshot.items.ids[index], "snapshot": snapshot.name, "items": rows})


async def _similar(service: Service, snapshot: Snapshot, index: int, k: int) -> list[dict[str, Any]]:
    (listed,) = await service.answers([Ask(snapshot, k, kind="similar", number=index)])
    return item_rows(snapshot, listed)


@router.get("/items/{item:id}", name="items", response_model=models.ItemAnswer)
async def one_item(item: str, query: Annotated[models.SampleQuery, Query()], service: TheService) -> Response:
    """One item: how popular it is, who of a sample of users gets it, what is like it."""
    snapshot = service.snapshot
    k, index = length(service, query.k), find_item(snapshot, item)
    sample = await service.sample(snapshot, kappa_of(snapshot, query.dial), k)
    receivers = sample.receivers(index)
    return as_json(
        {
            **snapshot.described(np.array([index]))[0],
            "popularity_rank": int(np.count_nonzero(snapshot.counts > snapshot.counts[index])) + 1,
            "recommended": {
                "dial": sample.kappa,
                "k": k,
                "sampled_users": len(sample.users),
                "in_lists": len(receivers),
                "users": [snapshot.users.ids[user] for user in receivers[:MOST_SHOWN]],
            },
            "similar": await _similar(service, snapshot, index, 10) if snapshot.unit is not None else [],
            "snapshot": snapshot.name,
        }
    )


@router.get("/users/{user:id}", name="users", response_model=models.UserAnswer)
async def one_user(user: str, service: TheService) -> Response:
    """What a user took, the most popular items first."""
    snapshot = service.snapshot
    index = find(snapshot.users, user)
    if index < 0:
        raise HTTPException(404, f"there is no user {_short(user)} in this run")
    taken = snapshot.described(snapshot.most_popular_taken(index, MOST_SHOWN))
    content = {"id": snapshot.users.ids[index], "interactions": len(snapshot.taken(index)), "taken": taken}
    return as_json({**content, "snapshot": snapshot.name})


@router.get("/search", name="search", response_model=models.SearchAnswer)
async def search(query: Annotated[models.SearchQuery, Query()], service: TheService) -> Response:
    """Users by the beginning of their id, items by that or by words of their title."""
    snapshot = service.snapshot
    table = snapshot.users if query.kind == "user" else snapshot.items
    rows = await asyncio.to_thread(table.search, query.q, MOST_SHOWN)
    return as_json({"kind": query.kind, "found": table.shown(rows), "snapshot": snapshot.name})


@router.get("/audit", name="audit", response_model=models.AuditAnswer)
async def audit(query: Annotated[models.SampleQuery, Query()], service: TheService) -> Response:
    """How popular and varied the lists of a sample of users are."""
    snapshot, k = service.snapshot, length(service, query.k)
    sample = await service.sample(snapshot, kappa_of(snapshot, query.dial), k)
    content = {"dial": sample.kappa, "k": k, "sampled_users": len(sample.users), "numbers": sample.numbers()}
    return as_json({**content, "snapshot": snapshot.name})


@router.get("/about", name="about", response_model=models.About)
async def about_run(service: TheService) -> Response:
    """What is served."""
    return as_json(about(service.snapshot, service.options))


@router.get("/health", name="health", response_model=models.Status)
async def health() -> Response:
    """Whether the process lives."""
    return as_json({"status": "alive"})


@router.get("/ready", name="ready", response_model=models.Status)
async def ready(request: Request, service: TheService) -> Response:
    """Whether requests are taken now."""
    stopping = getattr(request.state, "stopping", False)
    if stopping or service.batcher.waiting >= service.options.most_waiting:
        raise HTTPException(503, "stopping or full; ask another worker", RETRY)
    return as_json({"status": "ready", "snapshot": service.snapshot.name})


@router.get("/metrics", name="metrics", response_class=Response)
async def metrics(service: TheService) -> Response:
    """Counters of all workers in the OpenMetrics format."""
    service.metrics.queue.set(service.batcher.waiting)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.post("/reload", name="reload", response_model=models.Reloaded)
async def reload(service: TheService) -> Response:
    """Read the run again; the old one answers until the new one is ready."""
    if service.options.token is None:
        raise HTTPException(403, "reloading needs a token; start the service with --token-file FILE")
    begun = time.perf_counter()
    name = await service.reload()
    return as_json({"snapshot": name, "seconds": round(time.perf_counter() - begun, 3)})


@router.get("/", name="page", include_in_schema=False)
async def page() -> Response:
    """The live page."""
    html, policy = live_page()
    return Response(html, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})


# ------------------------------------------------------------------ errors


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _rule(field: str, options: ServeOptions) -> str:
    return f"must be a whole number from 1 to {options.most_k:,}" if field == "k" else RULES.get(field, "")


def sentence_of(error: dict[str, Any], options: ServeOptions) -> str:
    """What pydantic says of a request as one sentence: the field, the rule, the value."""
    path = [str(part) for part in error["loc"][1:]]
    if error["type"] == "json_invalid":
        return f"the body is not readable JSON ({error['ctx']['error']})"
    if path and (rule := _rule(path[0], options)):
        return f"{path[0]} {rule}, got {_short(error['input'])}"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    message = re.sub(r"^Input should", "it should", error["msg"])
    return f"{'.'.join(path[:2])[:80] or 'the body'}: {message[:1].lower()}{message[1:]}, got {_short(error['input'])}"


def _handlers(options: ServeOptions) -> dict[Any, Callable[[Request, Any], Coroutine[Any, Any, Response]]]:
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        first = error.errors()[0]
        if first["loc"][0] == "body" and kind != "application/json":
            return problem(415, "the body must be application/json")
        return problem(400, sentence_of(first, options))

    async def refused(_request: Request, error: HTTPException) -> Response:
        return problem(error.status_code, SENTENCES.get(error.detail, error.detail), dict(error.headers or {}))

    async def wrong_input(_request: Request, error: InputError) -> Response:
        return problem(400, str(error))

    async def full(_request: Request, _error: OverloadedError) -> Response:
        return overloaded()

    return {
        RequestValidationError: invalid,
        HTTPException: refused,
        InputError: wrong_input,
        OverloadedError: full,
    }


def create_app(
    options: ServeOptions, snapshot: Snapshot, read: Callable[[ServeOptions], Snapshot] | None = None
) -> FastAPI:
    """The application of one worker.

    Parameters
    ----------
    options : of `dpaa serve`
    snapshot : the first to serve
    read : reads the run again for a reload; None keeps the snapshot

    Returns
    -------
    an ASGI application; `app.state.service` is its `Service`
    """
    service = Service(options, snapshot, read or (lambda _options: snapshot))
    app = FastAPI(
        title="dpaa serve",
        version=dpaa.__version__,
        description="Recommendations with a popularity dial; answers equal `dpaa recommend`.",
        docs_url=None,
        redoc_url=None,
        lifespan=service.lifespan,
        exception_handlers=_handlers(options),
    )
    app.state.service = service
    app.include_router(router)
    app.add_middleware(Middleware, options=options, metrics=service.metrics, is_full=service.batcher.is_full)
    if options.allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app
