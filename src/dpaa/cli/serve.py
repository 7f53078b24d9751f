"""`dpaa serve`: a run as an HTTP service with a live page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from dpaa.cli.console import err, print_notes
from dpaa.cli.options import RunArgument
from dpaa.errors import InputError


def serve(
    context: typer.Context,
    run: RunArgument,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
    workers: Annotated[int, Option(min=1, max=64, help="Processes that answer.")] = 1,
    threads: Annotated[int, Option(min=1, max=64, help="Threads that each process computes with.")] = 1,
    index: Annotated[
        str, Option(metavar="exact|hnsw|ivf", help="How items are found; an index pays in large catalogues.")
    ] = "exact",
    titles: Annotated[Path | None, Option(help="Table of item_id and title, shown beside ids.")] = None,
    token_file: Annotated[Path | None, Option(help="File with the token that requests must show.")] = None,
    no_token: Annotated[
        bool, Option("--no-token", help="Listen to the world without a token: a proxy controls access.")
    ] = False,
    allow_origin: Annotated[
        list[str] | None, Option(metavar="URL", help="Web pages of this origin may ask; repeatable.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Name the service is asked under; repeatable.")
    ] = None,
    most_k: Annotated[int, Option("--most-k", min=1, max=10_000, help="Longest list.")] = 200,
    most_together: Annotated[int, Option(min=1, max=1024, help="Lists that are computed in one batch.")] = 32,
    most_waiting: Annotated[int, Option(min=1, help="Lists that may wait; more are refused with 503.")] = 256,
    timeout: Annotated[float, Option(min=0.1, help="Seconds after which a request is given up.")] = 10.0,
    grace: Annotated[float, Option(min=0, help="Seconds that requests get to end when the service stops.")] = 10.0,
) -> None:
    """Serve recommendations over HTTP, and a live page where people turn the dial.

    Answers equal those of `dpaa recommend`.  POST /reload (with a token) or SIGHUP reads the run again without dropping
    a request; SIGTERM lets open requests finish.  Requests and answers are described at /openapi.json and in
    docs/serving.md.

    \b
    Example:
      dpaa serve runs/lightgcn
      dpaa serve runs/lightgcn --port 0 --workers 2 --titles titles.csv
      dpaa serve runs/lightgcn --host 0.0.0.0 --token-file token
    """
    from dpaa.serving.options import KINDS, ServeOptions, check_token, is_loopback, needed

    for module in ("fastapi", "httptools", "orjson", "prometheus_client", "uvicorn"):
        needed(module, "dpaa serve", "serve")
    if index not in KINDS:
        raise InputError(f"there is no index {index!r}; choose one of {', '.join(KINDS)}")
    if index != "exact":
        needed("faiss", "an index", "index")
    token = read_token(token_file)
    check_token(host, token, no_token)
    for origin in allow_origin or ():
        if not origin.startswith(("http://", "https://")) or origin.endswith("/"):
            raise InputError(f"an origin is like https://shop.example, without a path; got {origin!r}")
    from dpaa.serving._server import listen
    from dpaa.serving._server import serve as serve_run

    plugins = context.parent.params.get("plugin") if context.parent else None
    options = ServeOptions(
        run=run.absolute(),
        index=index,  # type: ignore[arg-type]  # checked above
        titles=None if titles is None else titles.absolute(),
        plugins=tuple(plugins or ()),
        token=token,
        allow_origin=tuple(allow_origin or ()),
        allow_host=tuple(allow_host or ()),
        any_host=not is_loopback(host) and not allow_host,
        workers=workers,
        threads=threads,
        most_k=most_k,
        most_together=most_together,
        most_waiting=most_waiting,
        timeout=timeout,
        grace=grace,
    )
    if token is None and not is_loopback(host):
        print_notes([f"{host} answers everybody who reaches it: --no-token leaves that to a proxy"])
    serve_run(options, listen(host, port), err.print)


def read_token(file: Path | None) -> str | None:
    """From the file, or from the environment; arguments could be read by every process of the machine."""
    from dpaa._io import read_text

    if file is None:
        return os.environ.get("DPAA_SERVE_TOKEN", "").strip() or None
    token = read_text(file, 10_000).strip()
    if not token or not token.isascii() or any(one.isspace() for one in token):
        raise InputError(
            f"{file} holds no token: one line without blanks is needed; make it with `openssl rand -hex 32`"
        )
    return token
