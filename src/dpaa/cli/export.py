"""`dpaa export`: a run's vectors for other systems."""

from pathlib import Path
from typing import Annotated

from typer import Option

import dpaa
from dpaa._text import counted
from dpaa.cli import options
from dpaa.cli.console import out, print_notes


def export(
    run: options.RunArgument,
    to: Annotated[str, Option("--to", metavar="faiss|pgvector|npz", help="Target system.")],
    out_folder: Annotated[Path, Option("--out", metavar="DIR", help="Folder to write.")],
    users: options.Users = None,
    without_reranker: Annotated[bool, Option("--without-reranker", help="Export without the run's re-ranker.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Export user and item vectors; one index serves every κ of the popularity dial, set per query.

    The folder has instructions for queries (README.md) and code (query.py, or an SQL function).

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
