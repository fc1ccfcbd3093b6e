"""Build the site, or run the examples of pages: python -m ranktune.docs --help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ranktune.docs.llms import PLACE, llms_text
from ranktune.docs.pages import FOLDER, pages
from ranktune.docs.running import difference, refresh, run
from ranktune.docs.scripts import Ran, run_script, scripts, write_last_run

app = typer.Typer(add_completion=False, help=__doc__)

Pages = Annotated[list[Path] | None, typer.Argument(help="Pages; all that have examples by default.")]


@app.callback(invoke_without_command=True)
def build(
    context: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the site.")] = Path("build/site"),
    gallery: Annotated[bool, typer.Option(help="Run the examples of the gallery.")] = True,
) -> None:
    """Build the site. Warnings are errors; no network is needed."""
    if context.invoked_subcommand is not None:
        return
    from sphinx.cmd.build import build_main

    settings = [] if gallery else ["-D", "plot_gallery=0"]
    code = build_main(["-W", "--keep-going", "-q", "-n", "-j", "auto", *settings, str(FOLDER), str(output)])
    if code == 0:
        print(f"Open {output / 'index.html'}.")
    sys.exit(code)


@app.command("run")
def run_pages(paths: Pages = None) -> None:
    """Run the examples of pages, and say where they print something else."""
    wrong = 0
    for page in paths or pages():
        differences = [text for block in run(page) for step in block.steps if (text := difference(step))]
        print(f"{page}: {'as printed' if not differences else f'{len(differences)} outputs differ'}", flush=True)
        for text in differences:
            print(text)
        wrong += len(differences)
    sys.exit(1 if wrong else 0)


@app.command("refresh")
def refresh_pages(paths: Pages = None) -> None:
    """Run the examples of pages, and write what they print into the pages."""
    for page in paths or pages():
        refresh(page)
        print(page, flush=True)


@app.command("gallery")
def run_gallery(
    paths: Annotated[list[Path] | None, typer.Argument(help="Scripts; all by default.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Write the figures into this folder.")] = None,
) -> None:
    """Run the scripts of the gallery. A run of all that succeeds is written to docs/gallery/last_run.json."""
    runs = list[Ran]()
    for script in paths or scripts():
        runs.append(run_script(script, figures))
        print(f"{runs[-1].script}: {runs[-1].seconds} s, {runs[-1].figures} figures", flush=True)
        if runs[-1].wrong:
            print(runs[-1].wrong, flush=True)
    if any(ran.wrong for ran in runs):
        sys.exit(1)
    if not paths:
        write_last_run(runs)


@app.command("llms")
def write_llms() -> None:
    """Write docs/llms.txt, the list of the pages."""
    PLACE.write_text(llms_text(), encoding="utf-8")


@app.command("man")
def write_man(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the page.")] = Path("build/man"),
) -> None:
    """Write the manual page of the command line, ranktune.1."""
    from ranktune.docs.manual import write_manual

    sys.exit(write_manual(output))


if __name__ == "__main__":
    app()
