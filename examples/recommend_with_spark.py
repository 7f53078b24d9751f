"""Lists for all users over the executors of a Spark cluster, a shard a task; Spark reads the folder that comes of it.

    pip install dpaa pyspark
    spark-submit examples/recommend_with_spark.py runs/lightgcn lists --shards 16

The run and the folder lie where every executor sees them.  After a failure the same call makes what is missing.  The
log may come from Spark, too: `dpaa data log FOLDER` reads what `write.partitionBy(…).parquet(FOLDER)` has written.
"""

from __future__ import annotations

import argparse
import subprocess
import sys


def make_shard(number: int, run: str, folder: str, shards: int) -> str:
    """One shard by `dpaa recommend`; what is there already is left as it is."""
    call = [sys.executable, "-m", "dpaa", "recommend", run, "--shard", f"{number}/{shards}", "--out", folder]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"shard {number}/{shards}: {done.stderr.strip()}")
    return done.stdout.strip()


def main() -> None:
    """Make every shard, then read them all."""
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("folder")
    parser.add_argument("--shards", type=int, default=16)
    asked = parser.parse_args()
    run, folder, shards = asked.run, asked.folder, asked.shards
    spark = SparkSession.builder.appName("dpaa recommend").getOrCreate()
    numbers = spark.sparkContext.parallelize(range(1, shards + 1), shards)
    for said in numbers.map(lambda number: make_shard(number, run, folder, shards)).collect():
        print(said)
    lists = spark.read.parquet(folder)
    print(f"{lists.count():,} recommendations for {lists.select('user_id').distinct().count():,} users in {folder}")
    spark.stop()


if __name__ == "__main__":
    main()
