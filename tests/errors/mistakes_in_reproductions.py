"""Tables of the paper."""

from __future__ import annotations

from pathlib import Path

from tests.errors.mistake import Mistake

LISTS = {"train.txt": "1 10 11\n2 11 12\n", "val.txt": "1 12\n", "test.txt": "2 10\n"}
COAT = "--coat . --seeds 1"


def reproduce(kind: str, options: str, *says: str, spoil: object = None) -> Mistake:
    return Mistake(kind, f"dpaa reproduce {options}".strip(), says, LISTS, spoil if callable(spoil) else None)


def half_a_result() -> None:
    """Every file a result could be in is cut short."""
    from tests.command import dpaa_ok

    dpaa_ok("reproduce", "overall", "--coat", ".", "--seeds", 1, "--method", "most-popular")
    for file in Path("results/overall").iterdir():
        file.write_text(file.read_text()[:40])


def half_a_packed_file() -> None:
    """A file of packed results that is cut short."""
    import polars as pl

    half_a_result()
    file = Path("results/overall.parquet")
    pl.DataFrame({"key": ["a"], "json": ["{}"]}).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-40])


REPRODUCE = [
    reproduce("a table of the paper that does not exist", f"tables {COAT}", "no table 'tables'", "severity"),
    reproduce("no data to reproduce on", "overall", "no data to run on", "--coat, --yahoo-r3 or --kuairec"),
    reproduce("a budget that does not exist", f"overall {COAT} --budget huge", "no budget 'huge'", "quick, untuned"),
    reproduce("severity without KuaiRec", f"severity {COAT}", "name its folder with --kuairec DIR"),
    reproduce("a folder of data that is not there", "overall --coat nowhere", "there is no folder nowhere"),
    reproduce("a folder without Coat's files", "overall --coat diary", "diary has neither train.ascii", "train.txt"),
    reproduce(
        "a folder without KuaiRec's files",
        "severity --kuairec diary",
        "diary has neither small_matrix.csv and big_matrix.csv nor valid.txt or val.txt",
    ),
    reproduce(
        "Yahoo! R3 that is not it",
        "overall --yahoo-r3 raw-yahoo",
        "raw-yahoo",
        "where the published file has 15,400 users",
    ),
    reproduce("a row that is no method", f"overall {COAT} --method dpa", "no method 'dpa'", "did you mean dpaa?"),
    reproduce("a severity below 0", "severity --kuairec . --severity -1", "'--severity'", "-1"),
    reproduce("no seeds", f"overall {COAT} --seeds 0", "'--seeds'", "0"),
    reproduce("no jobs", f"overall {COAT} --jobs 0", "'--jobs'", "0"),
    reproduce("a file where the tables should go", f"overall {COAT} --out log.csv", "log.csv is a file", "--out DIR"),
    reproduce(
        "a result that is cut short",
        f"overall {COAT} --method most-popular",
        "is not readable JSON",
        "remove it",
        spoil=half_a_result,
    ),
    reproduce(
        "packed results that are cut short",
        f"overall {COAT} --method most-popular",
        "results/overall.parquet is not a readable file of results",
        "restore it",
        spoil=half_a_packed_file,
    ),
]

SECTIONS = {"Reproductions": REPRODUCE}
