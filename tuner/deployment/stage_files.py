"""The files of two stages, the table of the windows that were tried, and how the files are used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export.formats import FORMATS
from ranktune.solvers.export.two_stage import WRITERS, Stages, two_stage_files
from ranktune.solvers.models.base import Model
from ranktune.tuner.deployment.two_stage import MAX_LOSS, TwoStages, two_stages
from ranktune.tuner.evaluation.feature_costs import FeatureCosts, read_costs
from ranktune.tuner.evaluation.feature_order import FeatureLimits
from ranktune.tuner.evaluation.feature_sets import FeatureBudget
from ranktune.tuner.statistics.pareto import parse_limits

DEFAULT_WITHIN = "features<=8"
_PLUGIN = (
    "Create:  POST first.json to _ltr/_featureset/FIRST/_createmodel, where FIRST\n"
    "         has the features of the first stage alone: all of a set are computed.\n"
    "         POST model.json to _ltr/_featureset/ALL/_createmodel\n"
    "Rank:    POST request.json to INDEX/_search, with the query that selects\n"
    "         candidates in place of match_all, and your params"
)
USES: Mapping[str, str] = {
    "vespa": (
        "Put rank-profile.sd into your schema, see what each feature stands for there,\n"
        "deploy, and query with ranking=NAME. rerank-count is of each content node."
    ),
    "elasticsearch": _PLUGIN,
    "opensearch": _PLUGIN,
    "solr": (
        "Create:  PUT model.json to COLLECTION/schema/model-store\n"
        "Rank:    POST request.json to COLLECTION/query, with the query that selects\n"
        "         candidates in filter. The params x_... are functions: change them to\n"
        "         what your features are, such as query($title,0); add the efi of rq."
    ),
}
"""Format -> how to use what was written."""


class FirstStage(NamedTuple):
    """The limits of the first stage's features, and the window, None for the smallest that will do."""

    budget: FeatureBudget
    window: int | None = None

    @classmethod
    def parse(cls, window: int | None, within: str | None, cost: str | None) -> Self:
        """Return what options say. Raises ParameterError where the limits are not of cost or features."""
        limits = parse_limits(within or DEFAULT_WITHIN)
        if not limits or not limits.keys() <= {"cost", "nonzeros"}:
            raise ParameterError(
                f"within='{within}': the first stage has limits of cost or features, such as '{DEFAULT_WITHIN}'."
            )
        none = float("inf")
        most = FeatureLimits(limits.get("cost", none), limits.get("nonzeros", none))
        return cls(FeatureBudget(FeatureCosts.parse(read_costs(cost or "")), most), window)


def check_stages(format: str, folder: Path | None) -> None:
    """Raise ParameterError for a format without two stages, or without a folder for their files."""
    if format not in WRITERS:
        raise ParameterError(f"{format} has no two stages. Those that have: {', '.join(WRITERS)}.")
    if folder is None:
        raise ParameterError("two stages are several files: add -o FOLDER.")


def write_two_stages(
    model: Model, format: str, folder: Path, first: FirstStage, queries: Queries, *, name: str, store: str
) -> str:
    """Write the files of two stages of a model into a folder; return the table of windows and how to use the files.

    The first stage is learnt from the scores of queries, whose grades measure the loss.
    """
    check_stages(format, folder)
    complete = not FORMATS.find(format).missing_weights
    fitted = two_stages(model, queries, first.budget, first.window, complete=complete)
    stages = Stages(fitted.first, fitted.second, fitted.chosen, name, store)
    files = two_stage_files(stages, format)
    write_files(folder, files)
    return "\n".join([table(fitted), f"Written into {folder}: {', '.join(files)}", uses(format, name)])


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files into a folder. Raises ParameterError where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise ParameterError(f"cannot write into {folder}: {error.strerror}. Give a folder you may write to.") from None


def uses(format: str, name: str) -> str:
    """Return how the files of a format are used."""
    return USES[format].replace("NAME", name)


def table(fitted: TwoStages) -> str:
    """Return what each window loses and takes, in lines of 80 characters."""
    first, full = fitted.first.model, fitted.second.model
    lines = [
        f"First stage: {first.nonzeros} of the {full.nonzeros} features, linear. Second stage: {full.solver}.",
        f"Loss of {fitted.metric} against scoring all documents, on queries that the first stage",
        "was not learnt from. On the training data of the model it is overstated.",
        "",
        f"{'window':>8}  {'loss [95%]':>28}  {'us a query':>10}",
    ]
    lossless = next((window.window for window in fitted.windows if window.loss.high <= 0.0), 0)
    for window in fitted.windows:
        if lossless < window.window and window.window not in (fitted.chosen, fitted.windows[-1].window):
            continue
        loss = f"{window.loss.mean:+.5f} [{window.loss.low:+.5f}, {window.loss.high:+.5f}]"
        mark = " *" if window.window == fitted.chosen else ""
        lines.append(f"{window.window:>8}  {loss:>28}  {window.microseconds:>10.1f}{mark}")
    chosen = next(window for window in fitted.windows if window.window == fitted.chosen)
    lines += [
        "",
        f"* Window: {fitted.chosen}. The fewest documents whose loss is at most {MAX_LOSS:g}:",
        f"{fitted.by_interval} by the upper end of the interval, {fitted.by_mean} by the mean.",
        "Microseconds of processor time for a query, without computing its features:",
        f"first stage {fitted.first_microseconds:.1f}, full model on all documents {fitted.full_microseconds:.1f}, "
        f"two stages {chosen.microseconds:.1f}.",
    ]
    return "\n".join(lines)
