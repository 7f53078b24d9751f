"""`dpaa serve`: a run as an HTTP service with a live page."""

import os
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from dpaa.cli.console import err
from dpaa.cli.options import RunArgument, parse_values
from dpaa.errors import InputError, import_extra


def serve(
    context: typer.Context,
    run: RunArgument,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for any free port.")] = 8000,
    workers: Annotated[str, Option(metavar="N[,threads=N,waiting=N]", help="Worker processes (see above).")] = "1",
    token_file: Annotated[str | None, Option(metavar="FILE|none", help="File with the access token.")] = None,
    allow_origin: Annotated[list[str] | None, Option(help="Origin of web pages to allow (CORS); repeatable.")] = None,
    allow_host: Annotated[list[str] | None, Option(help="Host name to accept; repeatable.")] = None,
) -> None:
    """Serve recommendations over HTTP, with an interactive page for the popularity dial.

    Lists equal those of `dpaa recommend`.  POST /reload (with a token) or SIGHUP reloads the run without dropping
    requests; SIGTERM lets open requests finish.  /openapi.json and docs/serving.md describe requests and responses.
    Each worker process computes with threads=1 and queues at most waiting=256 lists; further requests get 503.

    \b
    Example:
      dpaa serve runs/lightgcn
      dpaa serve runs/lightgcn --port 0 --workers 2
      dpaa serve runs/lightgcn --host 0.0.0.0 --token-file token
    """
    from dpaa.serving.options import ServeOptions, check_token, is_loopback

    for module in ("fastapi", "httptools", "orjson", "prometheus_client", "uvicorn"):
        import_extra(module, "dpaa serve", "serve")
    from dpaa.serving import _server

    token = _read_token(None if token_file in (None, "none") else Path(token_file))
    check_token(host, token, token_file == "none")
    given = parse_values(workers, "workers", value=int, threads=int, waiting=int)
    options = ServeOptions(
        run=run.absolute(),
        plugins=tuple((context.parent.params.get("plugin") if context.parent else None) or ()),
        token=token,
        allow_origin=tuple(origin.rstrip("/") for origin in allow_origin or ()),
        allow_host=tuple(allow_host or ()),
        any_host=not is_loopback(host) and not allow_host,
        workers=given.get("value", 1),
        threads=given.get("threads", 1),
        most_waiting=given.get("waiting", 256),
    )
    _server.serve(options, _server.listen(host, port), err.print)


def _read_token(file: Path | None) -> str | None:
    """Read the token from a file or the environment; arguments can be read by every process of the machine."""
    from dpaa._io import read_text

    if file is None:
        return os.environ.get("DPAA_SERVE_TOKEN", "").strip() or None
    token = read_text(file, 10_000).strip()
    if not token.isascii() or len(token.split()) != 1:
        raise InputError(f"{file} has no token; it must be one word; create one with `openssl rand -hex 32`")
    return token
