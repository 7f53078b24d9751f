"""`dpaa export`: a run's vectors for other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

import dpaa
from dpaa._text import counted
from dpaa.cli import options
from dpaa.cli.console import out, print_notes


def export(
    run: options.RunArgument,
    to: Annotated[str, Option("--to", metavar="faiss|pgvector|npz", help="The system it is for.")],
    out_folder: Annotated[Path, Option("--out", metavar="DIR", help="Folder to write.")],
    users: options.Users = None,
    without_reranker: Annotated[bool, Option("--without-reranker", help="Leave the run's re-ranker out.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Export the vectors of users and items; one index serves every κ of the popularity dial, chosen per query.

    The folder says how to query (README.md) and has code that does (query.py, or a function in SQL).

    \b
    Example:
      dpaa export runs/lightgcn --to faiss --out vectors
      dpaa export runs/lightgcn --to pgvector --out tables && cd tables && psql \\
          -X -f load.sql shop
    """
    from dpaa.exporting import check_export

    check_export(out_folder, to, overwrite)
    model = dpaa.load(run)
    chosen = options.read_ids(users, model.user_ids, "user") if users else None
    about = dpaa.export(model, out_folder, to, users=chosen, overwrite=overwrite, without_reranker=without_reranker)
    if cold := about["users_without_training_pairs"]:
        print_notes([f"{counted(cold, 'user has', 'users have')} no training pairs and no vector; see README.md there"])
    size = f"{about['users']:,} users and {about['items']:,} items"
    out.print(f"vectors of {size} written to {out_folder} for {to}; next: read {out_folder / 'README.md'}")
