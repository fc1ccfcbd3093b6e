"""From a click log to judgments that a study is tuned on: the function clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ranktune.solvers.clicks.features.training import DocumentTable, Training
from ranktune.solvers.clicks.judging.judged import JudgedLog, judged
from ranktune.solvers.clicks.judging.models import DEFAULT, MODELS, check_takes_propensities
from ranktune.solvers.clicks.judgments import check_ending
from ranktune.solvers.clicks.propensities import given_propensities, of_column
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.errors import ParameterError, listed
from ranktune.solvers.data.readers.judgments import read_judgments


def clicks(
    *logs: str | Path,
    output: str | Path | None = None,
    model: str = DEFAULT,
    propensities: Mapping[int, float] | str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    first_position: int | None = None,
    judge_share: float = 0.25,
    qrels: str | Path | None = None,
    training: str | Path | None = None,
    documents: str | Path | None = None,
    gap: str = "1h",
    progress: Callable[[str], object] | None = None,
) -> JudgedLog:
    r"""Return what a click log says of the relevance of documents for queries, corrected for their positions.

    All click models are fitted to the earlier sessions and compared by the log-loss of the clicks of the later ones.
    The chosen model is then fitted to all sessions.

    Parameters
    ----------
    *logs : str or Path
        The files of a log: csv, tsv, Parquet or jsonl, also in the schema of User Behavior Insights, packed or not. A
        row is an impression with a column of clicks, or an event of a kind.
    output : str or Path, optional
        A .csv or .parquet file for the judgments, which tune takes as qrels.
    model : str, default="position-based"
        "position-based", "joint", "trust-bias", "coec" or "ctr".
    propensities : mapping of int to float, str or Path, optional
        Examination by position that is known, or a csv or Parquet file with the columns position and propensity; that
        of other positions is estimated. By default that of a column of the log with the role propensity, if it has one:
        examination where it follows the position alone, else how likely a document was shown where it was.
    columns : mapping of str to str, optional
        Role -> column, where names are not recognised: query, search (the id by which events are joined), document,
        position, session, time, kind, propensity, source, and kinds of events such as click.
    weights : mapping of str to float, optional
        Kind of event -> weight, besides a click of 1, such as {"purchase": 5}.
    first_position : {0, 1}, optional
        Where positions begin; by default found in the log.
    judge_share : float, default=0.25
        The share of the sessions, the latest ones, whose clicks judge the models; 0 for no comparison.
    qrels : str or Path, optional
        A file of judgments of people, with which those of all models are compared.
    training : str or Path, optional
        A .parquet or .csv file for a table of the impressions, which tune takes with qid="qid" and
        document_weight="document_weight", drop="position", or the other way round with position="position": each
        search is a query, clicks are grades that are weighted by inverse propensity, and features are what was known
        before the search. Further columns of the log are features unless they follow the position or were set by later
        events: these are left out, and remarks name them.
    documents : str or Path, optional
        A table of documents, or of documents for queries, whose columns become features of it too: numbers as they are,
        text as categories. Its columns of ids are named as those of the log, or have usual names.
    gap : str, default="1h"
        How late events may arrive: features are of events that long before the search.
    progress : callable, optional
        Called with a line of text before each step.

    Returns
    -------
    JudgedLog
        The judgments, examination by position, the losses of the models, and what became of every line of the log.

    Raises
    ------
    DataError
        A file cannot be read, or the log does not tell what the model needs.
    ParameterError
        An argument is invalid, or output cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import ranktune
    >>> path = Path(mkdtemp()) / "log.csv"
    >>> rows = [f"shoes,{'ab'[(n + k) % 2]},{k + 1},{int(n % (3 + 2 * k) == 0)}" for n in range(90) for k in range(2)]
    >>> _ = path.write_text("\n".join(["query,doc_id,rank,click", *rows]))
    >>> log = ranktune.clicks(path)
    >>> log.examination.value.round(2).tolist(), log.pairs
    ([1.0, 0.6], {'known': 2, 'one position': 0, 'unknown': 0})
    """
    if output is not None:
        check_ending(Path(output))
    if training is not None:
        check_ending(Path(training), "the table is")
    if training is None and documents is not None:
        raise ParameterError(f"documents={str(documents)!r} gives features to a table: give training=FILE too.")
    if not 0.0 <= judge_share < 1.0:
        raise ParameterError(f"judge_share={judge_share}: the share of the sessions is at least 0 and below 1.")
    MODELS.find(model)
    name = MODELS.spelling(model) or model
    propensity = None
    if propensities is not None:
        check_takes_propensities(name)
        propensity = given_propensities(propensities)
    judgments = None if qrels is None else read_judgments(qrels)
    say = progress or (lambda _: None)
    say("reading the log")
    further = training is not None
    log = ClickLog.open(*logs, columns=columns, weights=weights, first_position=first_position, further=further)
    table = None if documents is None else DocumentTable.read(documents, log.columns)
    remarks, column = list[str](), listed(log.columns.get("propensity", ()))
    if column and propensity is not None:
        remarks.append(f"The column {column} is not used: propensities are given.")
    elif column:
        propensity, remark = of_column(log, column)
        remarks.append(remark)
    result = judged(log, name, propensity, judge_share, judgments, say)
    result.remarks.extend(remarks)
    if training is not None:
        say("following the log in the order of time")
        searches = Training(log, result.examination, gap=gap, documents=table)
        searches.write(training)
        result.remarks.extend(searches.remarks)
    if output is not None:
        try:
            result.judgments.save(output)
        except OSError as error:
            raise ParameterError(f"cannot write {output}: {error.strerror}. Give a file you may write to.") from None
    return result
