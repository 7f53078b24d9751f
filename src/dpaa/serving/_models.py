"""Requests and answers of the service as types; the OpenAPI document comes from them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator

from dpaa._text import LARGEST_INTEGER
from dpaa.runs.lists import LONGEST_NUMBER
from dpaa.serving.options import MOST_IDS, MOST_PEOPLE

LONGEST_TEXT = 1000
"""Characters of an id, of a column's value or of a re-ranker's parameters."""
MOST_LIMITS = 20
"""Columns that a request may name, and values that it may name of one."""
LONGEST_LIST = 10_000
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.ASCII | re.IGNORECASE)


def _plainly_written(value: object) -> object:
    """Refuse what Python would read as a number although nobody writes it so: `1_0`, digits of other scripts, true."""
    if isinstance(value, bool) or (isinstance(value, str) and value != "run" and not NUMBER.fullmatch(value)):
        raise ValueError("not a number")
    return value


Text = Annotated[StrictStr, Field(max_length=LONGEST_TEXT)]
Id = Annotated[StrictInt, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | Text
Length = Annotated[int, BeforeValidator(_plainly_written), Field(ge=1, le=LONGEST_LIST)]
Dial = Annotated[
    Annotated[float, Field(allow_inf_nan=False)] | Literal["run"] | None,
    BeforeValidator(_plainly_written),
    Field(description="κ of the popularity dial; `run`, or nothing, is where the run keeps it."),
]
Rerank = Annotated[
    Text | None, Field(description="NAME or NAME,PARAMETER=VALUE; `none` for none, nothing for the run's own.")
]
Limit = Annotated[StrictInt, Field(ge=1, lt=10**LONGEST_NUMBER)]
Limits = Annotated[dict[Text, Limit], Field(max_length=MOST_LIMITS)]
LimitTexts = Annotated[
    list[Text],
    Field(max_length=MOST_LIMITS, description="COLUMN=N, as `recommend --at-most` and `--at-least`."),
]
Group = Literal["popular", "niche"]


class SimilarQuery(BaseModel):
    """Parameters of `GET /similar/{item}`."""

    k: Length = 10


class SampleQuery(BaseModel):
    """Parameters of `GET /items/{item}` and `GET /audit`."""

    dial: Dial = None
    k: Length = 20


class SearchQuery(BaseModel):
    """Parameters of `GET /search`."""

    kind: Literal["user", "item"] = "user"
    q: Annotated[str, Field(max_length=200)] = ""


class RecommendQuery(BaseModel):
    """Parameters of `GET /recommend/{user}`."""

    k: Length = 20
    dial: Dial = None
    rerank: Rerank = None
    explain: bool = False
    exclude: Annotated[list[Text], Field(max_length=MOST_IDS)] = []
    allow: Annotated[list[Text] | None, Field(max_length=MOST_IDS)] = None
    only: Annotated[
        list[Text], Field(max_length=MOST_LIMITS, description="COLUMN=VALUE: only items with this value.")
    ] = []
    at_most: LimitTexts = []
    at_least: LimitTexts = []


class RecommendBody(BaseModel):
    """Body of `POST /recommend`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["users"]}, {"required": ["histories"]}]}
    )

    users: Annotated[list[Id] | None, Field(min_length=1, max_length=MOST_PEOPLE)] = None
    histories: Annotated[
        list[Annotated[list[Id], Field(max_length=MOST_IDS)]] | None, Field(min_length=1, max_length=MOST_PEOPLE)
    ] = None
    k: Annotated[StrictInt, Field(ge=1, le=LONGEST_LIST)] = 20
    dial: Dial = None
    rerank: Rerank = None
    explain: StrictBool = False
    exclude: Annotated[list[Id], Field(max_length=MOST_IDS)] = []
    allow: Annotated[list[Id] | None, Field(max_length=MOST_IDS)] = None
    only: Annotated[
        dict[Text, Annotated[list[Text], Field(max_length=MOST_LIMITS)] | Text], Field(max_length=MOST_LIMITS)
    ] = {}
    at_most: Limits = {}
    at_least: Limits = {}

    @model_validator(mode="after")
    def _either_or(self) -> RecommendBody:
        if (self.users is None) == (self.histories is None):
            raise ValueError("give either users or histories")
        return self


# ------------------------------------------------------------------ answers


class Explanation(BaseModel):
    """Why an item is in a list."""

    interactions: int
    group: Group
    because: list[int | str] = []
    """Items of the history that it is like."""
    dial_part: float = 0.0
    """What the dial added to the score."""


class Row(BaseModel):
    """An item of a list."""

    id: int | str
    title: str | None = None
    score: float
    rank: int
    explanation: Explanation | None = None


class OneList(BaseModel):
    """A list of `POST /recommend`."""

    user: int | str | None = None
    history: int | None = None
    fallback: Annotated[
        Literal["popularity"] | None,
        Field(description="`popularity` for a user without training pairs or known items in the history."),
    ]
    items: list[Row]


class _How(BaseModel):
    dial: float
    rerank: str | None
    snapshot: Annotated[str, Field(description="Which state of the run answered.")]


class RecommendAnswer(_How):
    """Answer of `GET /recommend/{user}`."""

    user: int | str
    fallback: Literal["popularity"] | None
    items: list[Row]


class RecommendManyAnswer(_How):
    """Answer of `POST /recommend`, in the order of the request."""

    lists: list[OneList]


class SimilarAnswer(BaseModel):
    """Answer of `GET /similar/{item}`."""

    item: int | str
    snapshot: str
    items: list[Row]


class Described(BaseModel):
    """An item of a user's history."""

    id: int | str
    title: str | None = None
    interactions: int
    group: Group


class Recommended(BaseModel):
    """Users of a sample who get an item."""

    dial: float
    k: int
    sampled_users: int
    in_lists: int
    users: list[int | str]


class ItemAnswer(Described):
    """Answer of `GET /items/{item}`."""

    popularity_rank: int
    recommended: Recommended
    similar: list[Row]
    snapshot: str


class UserAnswer(BaseModel):
    """Answer of `GET /users/{user}`."""

    id: int | str
    interactions: int
    taken: list[Described]
    snapshot: str


class Named(BaseModel):
    """A user or an item that a search found."""

    id: int | str
    title: str | None = None


class SearchAnswer(BaseModel):
    """Answer of `GET /search`."""

    kind: Literal["user", "item"]
    found: list[Named]
    snapshot: str


class AuditAnswer(BaseModel):
    """Answer of `GET /audit`: metrics of the lists of a sample of users."""

    dial: float
    k: int
    sampled_users: int
    numbers: dict[str, float | None]
    snapshot: str


class About(BaseModel):
    """Answer of `GET /about`: the run, its dial and curve, the re-rankers and the limits of requests."""

    run: str
    dataset: str | None
    method: str
    users: int
    items: int
    popular_items: int
    titles: bool
    similar: bool
    columns: list[str]
    dial: dict[str, Any]
    rerank: str | None
    rerankers: list[dict[str, Any]]
    snapshot: str
    index: dict[str, Any] | None
    limits: dict[str, int]


class Status(BaseModel):
    """Answer of `GET /health` and `GET /ready`."""

    status: Literal["alive", "ready"]
    snapshot: str | None = None


class Reloaded(BaseModel):
    """Answer of `POST /reload`."""

    snapshot: str
    seconds: float


class Problem(BaseModel):
    """What is wrong, in one sentence (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
