"""The FastAPI application: requests, routes, and how a request becomes lists."""

import asyncio
import base64
import hashlib
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

import dpaa
from dpaa.errors import InputError
from dpaa.ranking.reranker import Reranker
from dpaa.serving._batcher import Batcher, OverloadedError
from dpaa.serving._middleware import PROBLEM, Metrics, Middleware, overloaded, problem
from dpaa.serving._snapshot import Listed, Parameters, Snapshot, compute, find, find_all, search, taken_items
from dpaa.serving._snapshot import Query as ListQuery
from dpaa.serving.options import ServeOptions

MOST_SHOWN = 50
"""Results of a search, receivers of an item, items of a user's history."""
INLINE = 500_000
"""Numbers of the item table up to which a batch is computed in the event loop."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": "What is wrong, in one sentence (RFC 9457)", "content": {PROBLEM: {}}}
    for code in ("4XX", 503)
}
POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page runs its own script, known by its hash, and sends requests to its own service alone."""

# ------------------------------------------------------------------ requests and answers

Text = Annotated[StrictStr, Field(max_length=1000)]
Id = Annotated[StrictInt, Field(ge=-(2**63), lt=2**64)] | Text
PathId = Annotated[str, Path(max_length=1000)]
Ids = Annotated[list[Id], Field(max_length=1000)]
Length = Annotated[int, Field(ge=1, le=1000)]
Dial = Annotated[
    float | Text | None,
    Field(description="κ of the popularity dial; `run`, the default, is the run's own."),
]
Rerank = Annotated[Text, Field(description="NAME or NAME,PARAMETER=VALUE; `none` for none, `run` for the run's own.")]
Limits = Annotated[dict[Text, Annotated[StrictInt, Field(ge=1)]], Field(max_length=20)]
Values = Annotated[list[Text], Field(max_length=20)]


class RecommendQuery(BaseModel):
    """Parameters of `GET /recommend/{user}`."""

    model_config = ConfigDict(extra="forbid")

    k: Length = 20
    dial: Dial = None
    rerank: Rerank = "run"
    explain: bool = False
    exclude: Ids = []
    allow: Ids | None = None


class RecommendBody(RecommendQuery):
    """Body of `POST /recommend`: either users or histories."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["users"]}, {"required": ["histories"]}]})

    users: Annotated[list[Id] | None, Field(min_length=1, max_length=100)] = None
    histories: Annotated[list[Ids] | None, Field(min_length=1, max_length=100)] = None
    only: Annotated[dict[Text, Values | Text], Field(max_length=20)] = {}
    at_most: Limits = {}
    at_least: Limits = {}


class SampleQuery(BaseModel):
    """Parameters of `GET /items/{item}` and `GET /audit`."""

    dial: Dial = None
    rerank: Rerank = "none"
    k: Length = 20


class Row(BaseModel, extra="forbid"):
    """An item of a list."""

    id: int | str
    title: str | None = None
    score: float
    rank: int
    explanation: dict[str, Any] | None = None


class RecommendAnswer(BaseModel, extra="forbid"):
    """Answer of `GET /recommend/{user}`; `fallback` is set for a user without training pairs."""

    user: int | str
    dial: float
    rerank: str | None
    snapshot: str
    fallback: Literal["popularity"] | None
    items: list[Row]


# ------------------------------------------------------------------ from a request to lists


class Service:
    """The run that a worker serves, its queue and its counters.

    Parameters
    ----------
    options : of `dpaa serve`
    snapshot : the run
    """

    def __init__(self, options: ServeOptions, snapshot: Snapshot) -> None:
        self.options, self.snapshot, self.model, self.metrics = options, snapshot, snapshot.model, Metrics()
        vectors = self.model.method.vectors()
        inline = vectors is not None and vectors.items.numel() <= INLINE
        self.batcher: Batcher[ListQuery, Listed] = Batcher(
            partial(compute, self.model), options.most_waiting, inline, self.metrics.batches.observe
        )

    def parameters(self, wish: RecommendQuery) -> Parameters:
        """What all lists of a request have in common."""
        model = self.model
        allow = None if wish.allow is None else find_all(model.item_ids, wish.allow)
        limits: dict[str, Any] = {}
        if isinstance(wish, RecommendBody):
            limits["quotas"] = model.columns.quotas(wish.at_most, wish.at_least)
            if wish.only:
                some = model.candidates if allow is None else allow
                allow = model.columns.allowed(wish.only, np.arange(len(model.item_ids)) if some is None else some)
        return replace(self.sampled(wish), exclude=find_all(model.item_ids, wish.exclude), allow=allow, **limits)

    def reranker(self, wish: str) -> Reranker | None:
        """The re-ranker of a request, which cannot name a class."""
        if ":" in wish:
            raise HTTPException(400, "a request cannot load a class; use a re-ranker that the service knows")
        return self.model.reranker(wish)

    def sampled(self, wish: SampleQuery | RecommendQuery) -> Parameters:
        """How the lists of a sample are made."""
        return Parameters(wish.k, self.model.kappa(wish.dial) + 0.0, self.reranker(wish.rerank))  # -0.0 is 0

    def of_user(self, parameters: Parameters, user: int) -> ListQuery:
        """The model's list for a user with training pairs, the popularity list for any other."""
        warm = user >= 0 and len(taken_items(self.model, user)) > 0
        return ListQuery(parameters, user if warm else None)

    def of_history(self, parameters: Parameters, items: list[int | str]) -> ListQuery:
        """The list of a history, the popularity list for one without a known item."""
        history = find_all(self.model.item_ids, items)
        return ListQuery(parameters, None, history if len(history) else None)

    def shown(self, query: ListQuery, listed: Listed, explain: bool) -> dict[str, Any]:
        """`fallback` and `items` of an answer; counts what is served."""
        rows = self.snapshot.listed_rows(listed)
        if explain:
            for row, reason in zip(rows, self.snapshot.explain(query, listed.items), strict=True):
                row["explanation"] = reason
        self.metrics.items.inc(len(rows))
        self.metrics.popular_items.inc(int(np.count_nonzero(self.snapshot.popular[listed.items])))
        return {"fallback": "popularity" if query.source == "popularity" else None, "items": rows}

    def how(self, parameters: Parameters) -> dict[str, Any]:
        """What an answer says of the way its lists were made."""
        name = None if parameters.reranker is None else parameters.reranker.in_words()
        return {"dial": parameters.kappa, "rerank": name, "snapshot": self.snapshot.name}

    async def similar(self, item: int, k: int) -> list[dict[str, Any]]:
        """Items like one, as `Model.similar_items` lists them."""
        frame = await asyncio.to_thread(self.model.similar_items, [self.model.item_ids[item]], k)
        return frame.drop("item_id").rename({"similar_item_id": "id"}).to_dicts()

    @asynccontextmanager
    async def lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """End with the parent process, however it ended."""
        loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()

        def orphaned(sentinel: int) -> None:
            loop.remove_reader(sentinel)
            signal.raise_signal(signal.SIGTERM)

        if parent is not None:
            loop.add_reader(parent.sentinel, orphaned, parent.sentinel)
        yield
        self.batcher.close()


def as_json(content: dict[str, Any]) -> Response:
    """Return a response without validation: its types are only needed for the OpenAPI document."""
    return Response(orjson.dumps(content), media_type="application/json")


def found_index(ids: Any, given: str) -> int:
    """Look up an id that must be there."""
    index = find(ids, given)
    if index < 0:
        raise HTTPException(404, f"there is no {given[:80]!r} in this run")
    return index


# ------------------------------------------------------------------ routes


async def service_of(request: Request) -> Service:
    """The service of a request's application; a coroutine, since FastAPI runs plain functions in a thread."""
    service: Service = request.app.state.service
    return service


TheService = Annotated[Service, Depends(service_of)]
router = APIRouter(responses=PROBLEMS)
page_router = APIRouter(include_in_schema=False)
"""What the live page reads; not for other programs."""


@router.get("/recommend/{user:path}", name="recommend", response_model=RecommendAnswer)
async def recommend(user: PathId, query: Annotated[RecommendQuery, Query()], service: TheService) -> Response:
    """The best items for one user."""
    parameters, index = service.parameters(query), find(service.model.user_ids, user)
    list_query = service.of_user(parameters, index)
    (listed,) = await service.batcher.ask(list_query)
    own_id = service.model.user_ids[index] if index >= 0 else user
    return as_json({**service.how(parameters), "user": own_id, **service.shown(list_query, listed, query.explain)})


@router.post("/recommend", name="recommend_many")
async def recommend_many(body: RecommendBody, service: TheService) -> Response:
    """Lists for several users, or for histories of users not in the training data."""
    if bool(body.users) == bool(body.histories):
        raise HTTPException(400, "give either users or histories")
    parameters = service.parameters(body)
    queries = [service.of_user(parameters, find(service.model.user_ids, user)) for user in body.users or ()]
    queries += [service.of_history(parameters, items) for items in body.histories or ()]
    answers = await service.batcher.ask(*queries)
    key, who = ("user", body.users) if body.users else ("history", list(range(len(queries))))
    lists = [
        {key: one, **service.shown(query, listed, body.explain)}
        for one, query, listed in zip(who, queries, answers, strict=True)
    ]
    return as_json({**service.how(parameters), "lists": lists})


@router.get("/similar/{item:path}", name="similar")
async def similar(item: PathId, service: TheService, k: Length = 10) -> Response:
    """Items similar to one item, by cosine."""
    index, name = found_index(service.model.item_ids, item), service.snapshot.name
    rows = await service.similar(index, k)
    return as_json({"item": service.model.item_ids[index], "snapshot": name, "items": rows})


@router.get("/about", name="about")
async def about(service: TheService) -> Response:
    """Description of the served run."""
    return as_json(service.snapshot.about())


@router.get("/health", name="health")
async def health() -> Response:
    """Liveness of the process."""
    return as_json({"status": "alive"})


@router.get("/ready", name="ready")
async def ready(request: Request, service: TheService) -> Response:
    """Readiness to accept requests."""
    if getattr(request.state, "stopping", False) or service.batcher.is_full():
        return overloaded("stopping or overloaded; use another worker")
    return as_json({"status": "ready", "snapshot": service.snapshot.name})


@router.get("/metrics", name="metrics", response_class=Response)
async def metrics(service: TheService) -> Response:
    """Counters of all workers in the OpenMetrics format."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.post("/reload", name="reload", status_code=202)
async def reload(service: TheService) -> Response:
    """Replace the workers by new ones that reload the run; if it cannot be loaded, the old ones stay."""
    if service.options.token is None:
        raise HTTPException(403, "reloading needs a token; start the service with --token-file FILE")
    os.kill(os.getppid(), signal.SIGHUP)
    return Response(b'{"status":"reloading"}', 202, media_type="application/json")


@page_router.get("/items/{item:path}", name="items")
async def one_item(item: PathId, query: Annotated[SampleQuery, Query()], service: TheService) -> Response:
    """One item: its popularity, the users of a sample who get it, and similar items."""
    snapshot, index = service.snapshot, found_index(service.model.item_ids, item)
    users, lists = await asyncio.to_thread(snapshot.sample, service.sampled(query))
    receivers = [user for user, items in zip(users.tolist(), lists, strict=True) if index in items]
    comparable = service.model.method.item_vectors() is not None
    return as_json(
        {
            **snapshot.rows(np.array([index]))[0],
            **snapshot.popularity(np.array([index]))[0],
            "sampled_users": len(users),
            "in_lists": len(receivers),
            "users": [service.model.user_ids[user] for user in receivers[:MOST_SHOWN]],
            "similar": await service.similar(index, 10) if comparable else [],
        }
    )


@page_router.get("/users/{user:path}", name="users")
async def one_user(user: PathId, service: TheService) -> Response:
    """Training items of a user, the most popular first."""
    snapshot, index = service.snapshot, found_index(service.model.user_ids, user)
    taken = taken_items(service.model, index)
    first = taken[np.argsort(-snapshot.counts[taken], kind="stable")][:MOST_SHOWN]
    rows = [row | facts for row, facts in zip(snapshot.rows(first), snapshot.popularity(first), strict=True)]
    return as_json({"id": service.model.user_ids[index], "interactions": len(taken), "taken": rows})


@page_router.get("/search", name="search")
async def search_ids(
    service: TheService, kind: Literal["user", "item"] = "user", q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Users by the beginning of their id, items by that or by words of their title."""
    model = service.model
    if kind == "item":
        rows = await asyncio.to_thread(search, model.item_ids, model.titles, q, MOST_SHOWN)
        return as_json({"results": service.snapshot.rows(rows)})
    rows = await asyncio.to_thread(search, model.user_ids, None, q, MOST_SHOWN)
    return as_json({"results": [{"id": model.user_ids[row]} for row in rows.tolist()]})


@page_router.get("/audit", name="audit")
async def audit(query: Annotated[SampleQuery, Query()], service: TheService) -> Response:
    """Popularity and coverage of the lists of a sample of users."""
    return as_json(await asyncio.to_thread(service.snapshot.audit, service.sampled(query)))


@page_router.get("/", name="page")
async def page() -> Response:
    """The live page."""
    html, policy = live_page()
    return Response(html, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})


@cache
def live_page() -> tuple[str, str]:
    """The page, and its content security policy."""
    folder = resources.files("dpaa.serving").joinpath("assets")
    html, *parts = (folder.joinpath(f"live.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    html = html.replace("{{style}}", parts[0], 1).replace("{{script}}", parts[1], 1)
    return html, POLICY.format(style=digests[0], script=digests[1])


# ------------------------------------------------------------------ the application


async def _invalid(_request: Request, error: RequestValidationError) -> Response:
    """What pydantic says of a request as one sentence: the field, the rule, the value."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return problem(400, f"the body is not readable JSON ({first['ctx']['error']})")
    if isinstance(first["input"], bytes):  # FastAPI has not parsed it
        return problem(400, "the body is not sent as JSON; add the header Content-Type: application/json")
    where = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    return problem(400, f"{where[:80]}: {first['msg'][:1].lower()}{first['msg'][1:]}, got {repr(first['input'])[:80]}")


async def _refused(_request: Request, error: HTTPException) -> Response:
    return problem(error.status_code, error.detail, dict(error.headers or {}))


async def _wrong_input(_request: Request, error: InputError) -> Response:
    return problem(400, str(error))


async def _full(_request: Request, _error: OverloadedError) -> Response:
    return overloaded()


def create_app(options: ServeOptions, snapshot: Snapshot) -> FastAPI:
    """The application of one worker.

    Parameters
    ----------
    options : of `dpaa serve`
    snapshot : the run to serve

    Returns
    -------
    an ASGI application; `app.state.service` is its `Service`
    """
    service = Service(options, snapshot)
    app = FastAPI(
        title="dpaa serve",
        version=dpaa.__version__,
        description="Recommendations with a popularity dial; lists equal those of `dpaa recommend`.",
        docs_url=None,
        redoc_url=None,
        lifespan=service.lifespan,
        exception_handlers={
            RequestValidationError: _invalid,
            HTTPException: _refused,
            InputError: _wrong_input,
            OverloadedError: _full,
        },
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(page_router)
    app.add_middleware(Middleware, options=options, metrics=service.metrics, is_full=service.batcher.is_full)
    if options.allow_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app
