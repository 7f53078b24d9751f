"""The OpenAPI 3.1 description of the service, with the limits it was started with."""

from __future__ import annotations

from typing import Any

import dpaa
from dpaa.evaluation.dial_curve import LARGEST_DIAL
from dpaa.serving.asked import LARGEST, LONGEST_TEXT, MOST_LIMITS
from dpaa.serving.settings import ServeSettings

Schema = dict[str, Any]
ID: Schema = {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": LONGEST_TEXT}]}
NUMBER: Schema = {"type": ["number", "null"]}
GROUP: Schema = {"type": "string", "enum": ["popular", "niche"]}
SNAPSHOT: Schema = {"type": "string", "description": "Which reading of the run answered."}
DIAL: Schema = {
    "anyOf": [{"type": "number", "minimum": -LARGEST_DIAL, "maximum": LARGEST_DIAL}, {"const": "run"}],
    "description": "κ of the popularity dial; `run`, or nothing, is where the run keeps it.",
}
RERANK: Schema = {
    "type": "string",
    "maxLength": LONGEST_TEXT,
    "description": "NAME or NAME,SETTING=VALUE; `none` for none, nothing for the run's own.",
}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def _array(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _parameter(name: str, schema: Schema, place: str = "query") -> Schema:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _answers(what: str, content: Schema, kind: str = "application/json", *others: int) -> Schema:
    found: Schema = {"200": {"description": what, "content": {kind: {"schema": content}}}}
    for status in (400, 401, 421, 503, *others):
        found[str(status)] = {"$ref": f"#/components/responses/Problem{503 if status == 503 else ''}"}
    return found


def _get(summary: str, parameters: list[Schema], answers: Schema) -> Schema:
    return {"get": {"summary": summary, "parameters": parameters, "responses": answers}}


def _schemas() -> Schema:
    title: Schema = {"title": {"type": ["string", "null"]}}
    explanation = _object(
        {"interactions": {"type": "integer"}, "group": GROUP}, {"because": _array(ID), "dial_part": {"type": "number"}}
    )
    row = _object(
        {"id": ID, "score": {"type": "number"}, "rank": {"type": "integer"}}, title | {"explanation": explanation}
    )
    described = _object({"id": ID, "interactions": {"type": "integer"}, "group": GROUP}, title)
    fallback: Schema = {
        "type": ["string", "null"],
        "description": "`popularity` where the user has no training pairs, or the model knows no item of the history.",
    }
    how: Schema = {"dial": {"type": "number"}, "rerank": {"type": ["string", "null"]}, "snapshot": SNAPSHOT}
    one: Schema = {"fallback": fallback, "items": _array(_ref("Row"))}
    return {
        "Row": row,
        "Described": described,
        "List": _object(how | {"user": ID} | one),
        "Lists": _object(how | {"lists": _array(_object(one, {"user": ID, "history": {"type": "integer"}}))}),
        "Similar": _object({"item": ID, "snapshot": SNAPSHOT, "items": _array(_ref("Row"))}),
        "Item": _object(
            {
                "id": ID,
                "interactions": {"type": "integer"},
                "group": GROUP,
                "popularity_rank": {"type": "integer"},
                "recommended": {"type": "object"},
                "similar": _array(_ref("Row")),
                "snapshot": SNAPSHOT,
            },
            title,
        ),
        "User": _object(
            {"id": ID, "interactions": {"type": "integer"}, "taken": _array(_ref("Described")), "snapshot": SNAPSHOT}
        ),
        "Found": _object(
            {"kind": {"type": "string"}, "found": _array(_object({"id": ID}, title)), "snapshot": SNAPSHOT}
        ),
        "Audit": _object(
            {
                "dial": {"type": "number"},
                "k": {"type": "integer"},
                "sampled_users": {"type": "integer"},
                "numbers": {"type": "object", "additionalProperties": NUMBER},
                "snapshot": SNAPSHOT,
            }
        ),
        "Problem": _object(
            {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
            }
        ),
    }


def _paths(settings: ServeSettings) -> Schema:
    user, item = (_parameter(name, {"type": "string", "minLength": 1}, "path") for name in ("user", "item"))
    length = _parameter("k", {"type": "integer", "minimum": 1, "maximum": settings.most_k})
    dial = _parameter("dial", DIAL)
    ids = _array({"type": "string", "maxLength": 200}, min(settings.most_ids, 20))  # a URL takes 64 KB; a body more
    how = [length, dial, _parameter("exclude", ids), _parameter("allow", ids), _parameter("rerank", RERANK)]
    typed: Schema = {"type": "string", "maxLength": LONGEST_TEXT}
    value = _array(typed | {"description": "COLUMN=VALUE: only items with this value."}, MOST_LIMITS)
    limit = _array(typed | {"description": "COLUMN=N, as `recommend --at-most` and `--at-least`."}, MOST_LIMITS)
    how += [_parameter("only", value), _parameter("at_most", limit), _parameter("at_least", limit)]
    how.append(_parameter("explain", {"type": "boolean"}))
    numbers: Schema = {
        "type": "object",
        "maxProperties": MOST_LIMITS,
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": LARGEST},
    }
    values: Schema = {"anyOf": [typed, _array(typed, MOST_LIMITS)]}
    people: Schema = {
        "users": _array(ID, settings.most_people) | {"minItems": 1},
        "histories": _array(_array(ID, settings.most_ids), settings.most_people) | {"minItems": 1},
    }
    body: Schema = {
        "type": "object",
        "properties": people
        | {
            "k": length["schema"],
            "dial": DIAL,
            "exclude": _array(ID, settings.most_ids),
            "allow": _array(ID, settings.most_ids),
            "only": {"type": "object", "maxProperties": MOST_LIMITS, "additionalProperties": values},
            "at_most": numbers,
            "at_least": numbers,
            "rerank": RERANK,
            "explain": {"type": "boolean"},
        },
        "oneOf": [{"required": ["users"]}, {"required": ["histories"]}],
        "additionalProperties": False,
    }
    many: Schema = {
        "summary": "Lists for many users, or for histories of people never seen",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": _answers("Lists in the order asked for", _ref("Lists"), "application/json", 413, 415),
    }
    search = [
        _parameter("kind", {"type": "string", "enum": ["user", "item"]}),
        _parameter("q", {"type": "string", "maxLength": 200}),
    ]
    anything: Schema = {"type": "object"}
    openmetrics = "application/openmetrics-text"
    return {
        "/recommend/{user}": _get("The best items for one user", [user, *how], _answers("A list", _ref("List"))),
        "/recommend": {"post": many},
        "/similar/{item}": _get(
            "Items like one", [item, length], _answers("A list", _ref("Similar"), "application/json", 404)
        ),
        "/items/{item}": _get(
            "One item: how popular, who gets it, what is like it",
            [item, dial, length],
            _answers("The item", _ref("Item"), "application/json", 404),
        ),
        "/users/{user}": _get("What a user took", [user], _answers("The user", _ref("User"), "application/json", 404)),
        "/search": _get("Users by id, items by id or title", search, _answers("What was found", _ref("Found"))),
        "/audit": _get("How popular and varied lists are", [dial, length], _answers("Numbers", _ref("Audit"))),
        "/about": _get("What is served", [], _answers("The run", anything)),
        "/health": _get("Whether the process lives", [], _answers("It does", anything)),
        "/ready": _get("Whether requests are taken", [], _answers("They are", anything)),
        "/metrics": _get("Counters", [], _answers("OpenMetrics", {"type": "string"}, openmetrics)),
        "/reload": {
            "post": {
                "summary": "Read the run again; the old one answers until the new one is ready",
                "responses": _answers("The new snapshot", anything, "application/json", 403, 409),
            }
        },
    }


def openapi(settings: ServeSettings) -> Schema:
    """The document."""
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    retry = {"Retry-After": {"schema": {"type": "integer"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dpaa serve",
            "version": dpaa.__version__,
            "description": "Recommendations with a popularity dial; answers equal `dpaa recommend`.",
        },
        "paths": _paths(settings),
        "components": {
            "schemas": _schemas(),
            "responses": {
                "Problem": {"description": "What is wrong, in one sentence (RFC 9457)", "content": problem},
                "Problem503": {"description": "Too much to do; come again", "headers": retry, "content": problem},
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if settings.token is not None else [],
    }
