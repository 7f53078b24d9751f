"""`dpaa reproduce`: tables of the paper, ours beside the paper's."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpaa.cli.console import err, out

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]}
)

ROWS = ("most-popular", "lightgcn", "dpaa", "dpaa-as-printed")
"""What every table that reproduces the paper has at least."""

Methods = Annotated[
    list[str] | None,
    typer.Option("--method", help='Row: a method, settings behind it: "dpaa layer_emphasis=2"; repeatable.'),
]
Jobs = Annotated[int, typer.Option(min=1, help="Trainings at a time, one core each.")]
Results = Annotated[Path, typer.Option(help="Where results are kept; what is there is not run again.")]
Work = Annotated[Path, typer.Option(help="Where datasets and pre-trained models are kept meanwhile.")]
Table = Annotated[Path | None, typer.Option("--out", help="Markdown file for the table, besides the screen.")]


@app.command()
def overall(
    coat: Annotated[Path, typer.Option(help="Coat: the official matrices, or train.txt, val.txt, test.txt.")],
    method: Methods = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings per method.")] = 10,
    jobs: Jobs = 1,
    results: Results = Path("results/overall"),
    work: Work = Path(".dpaa-work"),
    out_file: Table = None,
) -> None:
    """Overall performance on Coat under all three overlap conventions.

    \b
    Example:
      dpaa reproduce overall --coat coat/ --method lightgcn --method most-popular --seeds 10 --jobs 2
    """
    from dpaa.experiments import overall as experiment
    from dpaa.experiments.run import run_all

    labels = method or list(ROWS)
    folder = work / "coat"
    experiment.coat(coat).write(folder, overwrite=True)
    found = run_all(experiment.runs(folder, labels, seeds), results, work, jobs, _say)
    command = f"dpaa reproduce overall --coat DIR {_rows(labels)} --seeds {seeds}"
    _show("Coat: D 256, L 2, lr 1e-3", command, experiment.table(found, labels), out_file)


@app.command()
def severity(
    kuairec: Annotated[Path, typer.Option(help="Folder with valid.txt and test.txt: the small matrix's positives.")],
    severities: Annotated[list[float] | None, typer.Option("--severity", help="Severity; repeatable.")] = None,
    method: Methods = None,
    seeds: Annotated[int, typer.Option(min=1, help="Datasets and trainings per severity and method.")] = 3,
    jobs: Jobs = 1,
    results: Results = Path("results/severity"),
    work: Work = Path(".dpaa-work"),
    metric: Annotated[str, typer.Option(help="What the table shows.")] = "recall@20",
    out_file: Table = None,
) -> None:
    """Recall on KuaiRec data with growing bias severity, ours beside the paper's.

    \b
    Example:
      dpaa reproduce severity --kuairec kuairec/ --severity 0 --severity 9 --method lightgcn --seeds 1
    """
    from dpaa.experiments import severity as experiment
    from dpaa.experiments.run import run_all

    labels, chosen = method or list(ROWS), severities or [float(s) for s in range(10)]
    specs = []
    for seed in range(seeds):
        for label, data in experiment.datasets(kuairec, chosen, seed):
            folder = work / data.name
            data.write(folder, overwrite=True)
            specs += experiment.runs(label, folder, labels, seed)
    found = run_all(specs, results, work, jobs, _say)
    levels = " ".join(f"--severity {level:g}" for level in chosen)
    command = f"dpaa reproduce severity --kuairec DIR {levels} {_rows(labels)} --seeds {seeds}"
    command += "" if metric == "recall@20" else f" --metric {metric}"
    _show("Severity: D 256, L 4, lr 1e-3", command, experiment.table(found, chosen, labels, metric), out_file)


def _say(line: str) -> None:
    err.print(line, markup=False)


def _rows(labels: list[str]) -> str:
    return " ".join(f"--method {shlex.quote(label)}" for label in labels)


def _show(title: str, command: str, table: str, file: Path | None) -> None:
    """Print the table; with a file, write it there too, with the command that makes it again."""
    out.print(table, markup=False)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = f"# {title}\n\nMean ± deviation over seeds.  Made by\n\n    {command}\n\n{table}"
        file.write_text(text, encoding="utf-8")
