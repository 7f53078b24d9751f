"""Lists for all users over the machines of a Ray cluster, a shard a task; Ray Data reads the folder that comes of it.

    pip install dpaa 'ray[data]'
    python examples/recommend_with_ray.py runs/lightgcn lists --shards 16

The run and the folder lie where every machine sees them.  After a failure the same call makes what is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any


def make_shard(row: dict[str, Any], run: str, folder: str, shards: int) -> dict[str, Any]:
    """One shard by `dpaa recommend`; what is there already is left as it is."""
    shard = f"{row['item']}/{shards}"
    call = [sys.executable, "-m", "dpaa", "recommend", run, "--shard", shard, "--out", folder]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"shard {shard}: {done.stderr.strip()}")
    return {"shard": row["item"], "said": done.stdout.strip()}


def main() -> None:
    """Make every shard, then read them all."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("folder")
    parser.add_argument("--shards", type=int, default=16)
    asked = parser.parse_args()
    how = {"run": asked.run, "folder": asked.folder, "shards": asked.shards}
    tasks = ray.data.from_items(list(range(1, asked.shards + 1)), override_num_blocks=asked.shards)
    for row in tasks.map(make_shard, fn_kwargs=how, num_cpus=1).take_all():
        print(row["said"])
    lists = ray.data.read_parquet(asked.folder, file_extensions=["parquet"])
    print(f"{lists.count():,} recommendations for {len(lists.unique('user_id')):,} users in {asked.folder}")


if __name__ == "__main__":
    main()
