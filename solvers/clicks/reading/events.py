"""A frame of a log to rows of the store: what each line is, and which are left out whatever else the log holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars
from polars import col

from ranktune.solvers.clicks.reading.roles import KINDS, amounts
from ranktune.solvers.clicks.reading.store import FURTHER, IMPRESSION, NO_TIME, NONE, QUERY, RESULT, Names, Store
from ranktune.solvers.clicks.reading.times import is_number, milliseconds

Roles = Mapping[str, Sequence[str]]

UNWEIGHTED = "an action without a weight: "
"""Begins the reason for which events of other kinds are left out."""
DAY = 86_400_000
_FARTHEST = 10**9
"""A position beyond is counted as this one, which is above any page."""
MOST_TEXTS = 10_000
"""Different values beyond which a further column of text is none of categories."""
_AMOUNT = {"true": "1", "false": "0", "True": "1", "False": "0"}


def add_events(frame: polars.DataFrame, roles: Roles, weights: Mapping[str, float], now: int, store: Store) -> None:
    """Add the events in a frame to the store. Times beyond now, in milliseconds, are in the future."""
    for role, names in roles.items():
        store.columns.setdefault(role, {}).update(dict.fromkeys(names))
    kinds = [kind for kind in amounts(weights) if kind in roles]
    single = {name for role, names in roles.items() if role != "results" for name in names}
    nested = [name for name in single if frame.schema[name].is_nested()]
    frame = frame.with_columns(polars.lit(None, polars.String).alias(name) for name in nested)
    texts = frame.select(
        *(_text(frame, roles, role).alias(role) for role in ("document", "position", "source", "propensity")),
        (_text(frame, roles, "query") if "query" in roles or _joined(roles) else polars.lit("")).alias("query"),
        _search(frame, roles).alias("search"),
        _text(frame, roles, "session").alias("session"),
        _kind(frame, roles).alias("kind"),
        *(_number(roles[kind][0]).alias(f"amount {kind}") for kind in kinds),
        _results(frame, roles).alias("results"),
        *(
            (
                _text(frame, {name: [name]} if name in frame.columns else {}, name)
                if name in store.texts
                else number_or_nan(frame, name)
            ).alias(FURTHER + name)
            for name in store.further
        ),
    )
    time = milliseconds(frame[roles["time"][0]]) if "time" in roles else polars.Series([None] * frame.height)
    given = frame[roles["time"][0]].is_not_null() if "time" in roles else polars.repeat(False, frame.height, eager=True)
    events = texts.with_columns(
        time.cast(polars.Int64).alias("time"),
        given.alias("has time"),
        col("position").cast(polars.Float64, strict=False).alias("place"),
        col("propensity").cast(polars.Float64, strict=False).alias("chance"),
    )
    events = events.with_columns(_reason(roles, weights, kinds, now).alias("reason"))
    reasons = events["reason"].drop_nulls().value_counts()
    store.account.left_out.update(dict(reasons.iter_rows()))
    kept = events["reason"].is_null()
    events = events.filter(kept)
    if not events.height:
        return
    if "time" in roles:
        times = frame[roles["time"][0]].filter(kept)
        numbers = int(is_number(times).fill_null(False).sum())
        store.times.update(numbers=numbers, dates=times.len() - times.null_count() - numbers)
        store.has_clock |= bool((events["time"] % DAY != 0).any())
    store.has_propensity |= "propensity" in roles
    by_id = _joined(roles) and roles.get("query") == roles.get("search")
    _add(events, weights, kinds, store, by_id=by_id)


def _text(frame: polars.DataFrame, roles: Roles, role: str) -> polars.Expr:
    """Return the column of a role as text, the first of several that a row has; empty text is null."""
    texts = [
        polars.when(text != "").then(text) for text in (col(name).cast(polars.String) for name in roles.get(role, ()))
    ]
    return polars.coalesce(texts) if texts else polars.lit(None, dtype=polars.String)


def _search(frame: polars.DataFrame, roles: Roles) -> polars.Expr:
    """Return what tells searches apart, which is the session where nothing is joined."""
    return _text(frame, roles, "search" if _joined(roles) else "session")


def _joined(roles: Roles) -> bool:
    """Return whether impressions and clicks are rows apart."""
    return "kind" in roles or "click" not in roles


def _kind(frame: polars.DataFrame, roles: Roles) -> polars.Expr:
    """Return the kinds, null where there is none; a query has no document, and no kind where others have one."""
    if "kind" not in roles:
        return polars.lit("impression" if "document" in roles else "query")
    query = polars.when(_text(frame, roles, "document").is_null()).then(polars.lit("query"))
    return polars.coalesce(_text(frame, roles, "kind").str.to_lowercase().replace(KINDS), query)


def _number(name: str) -> polars.Expr:
    """Return a column as numbers: 0 where it is empty, nan where it holds something else."""
    text = polars.when(col(name).cast(polars.String) != "").then(col(name).cast(polars.String))
    return (
        polars.when(text.is_null())
        .then(0.0)
        .otherwise(text.replace(_AMOUNT).cast(polars.Float64, strict=False).fill_null(float("nan")))
    )


def number_or_nan(frame: polars.DataFrame, name: str) -> polars.Expr:
    """Return a column as numbers, nan where it holds something else or is not there."""
    if name not in frame.columns or frame.schema[name].is_nested():
        return polars.lit(float("nan"))
    number = col(name).cast(polars.Float64, strict=False)
    return polars.when(number.is_finite()).then(number).otherwise(float("nan"))


def numbers_and_texts(frame: polars.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns that hold numbers and, besides empty cells, nothing else; and those that hold other text."""
    flat = [name for name, kind in frame.schema.items() if not kind.is_nested()]
    given = frame.select((col(name).cast(polars.String) != "").sum() for name in flat)
    numbers = frame.select(number_or_nan(frame, name).is_not_nan().sum().alias(name) for name in flat)
    held = [name for name in flat if given[name].item()]
    plain = [name for name in held if numbers[name].item() == given[name].item()]
    return plain, [name for name in held if name not in plain]


def codes(column: polars.Series, names: Names) -> polars.Series:
    """Return the numbers of the values of a column of text as floats, nan where it is null.

    There are none once the column has more different values than a category can have.
    """
    if len(names.names) > MOST_TEXTS:
        return polars.repeat(float("nan"), len(column), eager=True)
    numbers = names.numbered(column).cast(polars.Float64)
    return numbers.set(numbers == NONE, float("nan"))


def _results(frame: polars.DataFrame, roles: Roles) -> polars.Expr:
    names = [name for name in roles.get("results", ()) if isinstance(frame.schema[name], polars.List)]
    none = polars.lit(None, dtype=polars.List(polars.String))
    return col(names[0]).cast(polars.List(polars.String)) if names else none


def _reason(roles: Roles, weights: Mapping[str, float], kinds: Sequence[str], now: int) -> polars.Expr:
    """Return why each line is left out, null where it is not; the first reason that holds."""
    query, shown = col("kind") == "query", col("kind") == "impression"
    counted = ["impression", "query", *amounts(weights)]
    joined = _joined(roles)
    whole = (col("place") >= 0) & (col("place") == col("place").floor()) & col("place").is_finite()
    amount = [col(f"amount {kind}") for kind in kinds if weights.get(kind)]
    bad = polars.any_horizontal([polars.lit(False), *((number < 0) | ~number.is_finite() for number in amount)])
    checks = [
        (col("kind").is_null(), "no kind of event"),
        (col("search").is_null() & joined, "no search"),
        (query & col("query").is_null(), "a query without text"),
        (~query & col("document").is_null(), "no document"),
        (col("query").is_null() & ("query" in roles and not joined), "no query"),
        (shown & col("position").is_null(), "no position"),
        (shown & ~whole.fill_null(False), "impossible position"),
        (bad, "impossible number of clicks or other events"),
        (
            shown & ~((col("chance") > 0) & (col("chance") <= 1)).fill_null(False) & ("propensity" in roles),
            "a propensity that is not above 0 and at most 1",
        ),
        (~query & col("has time") & col("time").is_null(), "unreadable time"),
        (~query & (col("time") > now), "time in the future"),
    ]
    action = polars.when(~col("kind").is_in(counted)).then(polars.format(UNWEIGHTED + "{}", "kind"))
    return polars.coalesce(action, *(polars.when(when).then(polars.lit(what)) for when, what in checks))


def _add(
    events: polars.DataFrame, weights: Mapping[str, float], kinds: Sequence[str], store: Store, *, by_id: bool
) -> None:
    """Give names their numbers, count what is known of sessions and positions, and store the rows."""
    query = store.queries.numbered(events["query"])
    session = store.session_names.numbered(events["session"]).to_numpy().copy()
    without = session == NONE
    session[without] = store.session_names.anonymous(int(without.sum()))
    click = sum((weights.get(kind, 0.0) * col(f"amount {kind}") for kind in kinds), polars.lit(0.0))
    rows = events.with_columns(
        polars.Series("session", session, dtype=polars.Int32),
        (NONE - 1 - query if by_id else query).alias("query"),
        store.documents.numbered(events["document"]).alias("document"),
        store.kinds.numbered(events["kind"]).cast(polars.Int16).alias("kind"),
        store.sources.numbered(events["source"]).cast(polars.Int16).alias("source"),
    ).with_columns(
        polars.when(col("search").is_null())
        .then(col("session").cast(polars.UInt64))
        .otherwise(col("search").hash(seed=0))
        .alias("search"),
        col("place").fill_null(NONE).fill_nan(NONE).clip(NONE, _FARTHEST).alias("position"),
        col("time").fill_null(NO_TIME),
        click.alias("click"),
        *(codes(events[FURTHER + name], names).alias(FURTHER + name) for name, names in store.texts.items()),
        col("chance").fill_null(float("nan")).alias("propensity"),
    )
    clicked = events["kind"] == "click"
    if "click" in kinds:
        clicked |= (events["kind"] == "impression") & (events["amount click"] > 0)
    store.counted.update(dict(events["kind"].value_counts().iter_rows()))
    store.counted.update({name: int((events[f"amount {name}"] > 0).sum()) for name in kinds})
    cast = rows.select(col(name).cast(kind) for name, kind in store.row.items())
    store.sessions.add(cast, clicked, len(store.session_names.names))
    shown = cast.filter(col("kind") == IMPRESSION)
    for source, position, count in shown.group_by("source", polars.col("position").clip(0, 2)).len().iter_rows():
        store.starts.setdefault(source, Counter())[position] += count
    store.add(cast)
    results = rows.filter((col("kind") == QUERY) & (col("results").list.len() > 0))
    if results.height:
        store.results += results.height
        rows = _of_results(results, store)
        store.sessions.add(rows, polars.repeat(False, rows.height, eager=True), len(store.session_names.names))
        store.add(rows)


def _of_results(queries: polars.DataFrame, store: Store) -> polars.DataFrame:
    """Return the results that queries list as rows, at positions from 0."""
    ranks = polars.int_ranges(0, col("results").list.len()).alias("position")
    rows = queries.with_columns(ranks, kind=polars.lit(RESULT)).explode("results", "position")
    rows = rows.with_columns(document=store.documents.numbered(rows["results"]))
    return rows.select(col(name).cast(kind) for name, kind in store.row.items())
