"""What the conclusions of a study say in the terminal and on pages, in words, from the content of `result.json`."""

from __future__ import annotations

from collections import Counter

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import listed
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.tuner.selection.results import BASELINE, gain_sentence

BLENDS = ("Blend", "TreeBlend", "LinearBlend")
"""Names of rows that are blends."""


def chosen_name(result: JsonView) -> str:
    """Return the solver of the chosen model; over folds, how often each was chosen."""
    if not result.get("folds"):
        return str(result["best"]["solver"])
    solvers = Counter(fold["best"]["solver"] for fold in result["folds"])
    return ", ".join(f"{name} on {n}" for name, n in solvers.most_common()) + f" of {len(result['folds'])} folds"


def rivals(result: JsonView) -> list[JsonView]:
    """Return the rows of the other models, the best by validation first."""
    return [row for row in result["leaderboard"][1:] if row["solver"] != BASELINE]


def gain(result: JsonView) -> str:
    """Return the gain over the baseline in a sentence; "" without a baseline."""
    measured = result.get("gain")
    return "" if measured is None else gain_sentence(measured)


def outside(result: JsonView) -> str:
    """Return a remark where the test value is outside of its interval by validation."""
    limits, test = result.get("expected_on_test_interval"), result["best"].get("test")
    if limits is None or None in (test, *limits) or limits[0] <= test <= limits[1]:
        return ""
    side = "below" if test < limits[0] else "above"
    return (
        f"That is {side} the interval expected by validation ({limits[0]:.3f} to {limits[1]:.3f}): "
        "the test queries may differ from the others."
    )


def with_ends(measured: JsonView, name: str) -> str:
    """Return a difference with the ends of its interval."""
    if measured[name] is None:
        return "an unknown amount of"
    low, high = measured[f"{name}_interval"]
    return f"{measured[name]:+.4f} ({low:+.4f} to {high:+.4f})"


def chosen_because(result: JsonView) -> str:
    """Return on what evidence the first row was chosen, and not one with a higher number; "" where none is higher."""
    best, others = result["leaderboard"][0], rivals(result)
    column = "vali" if best.get("again") is None else "again"
    parts = []
    higher = _higher(best, others, column)
    if higher:
        row = higher[0]
        numbers = f"{row[column]:.4f} against {best[column]:.4f}"
        parts.append(f"{row['solver']} has a higher {column} ({numbers}), and was not chosen: {_reason(result, row)}.")
    elif column == "again" and (above := _higher(best, others, "vali")):
        name = above[0]["solver"]
        parts.append(f"{name} has a higher vali, and was not chosen: again decides, on folds that no trial has seen.")
    return " ".join([*parts, *filter(None, [result.get("set_aside", "")])])


def higher_on_test(result: JsonView) -> str:
    """Return which models have a higher test score than the chosen one; "" where none has."""
    names = [row["solver"] for row in _higher(result["leaderboard"][0], rivals(result), "test")]
    return f"Higher on test, which takes no part in the choice: {listed(names, 3)}." if names else ""


def feature_alone(result: JsonView) -> str:
    """Return a question about the one feature that validates no worse than every model; "" where a model is better."""
    rows = [row for row in result["leaderboard"] if row["solver"] != BASELINE and row.get("vali") is not None]
    models = [row["vali"] for row in rows if not row.get("feature")]
    best = max((row for row in rows if row.get("feature")), key=lambda row: float(row["vali"]), default=None)
    if best is None or not models or best["vali"] < max(models):
        return ""
    return (
        f"{best['feature']} alone reaches {best['vali']:.4f} by validation, no less than every model: is it known "
        "before the ranking? If it is not, leave it out of the data (--drop, of a table)."
    )


def _higher(best: JsonView, others: list[JsonView], column: str) -> list[JsonView]:
    """Return the rows whose number is higher as it is printed, the highest first."""
    if best.get(column) is None:
        return []
    above = [row for row in others if row.get(column) is not None and round(row[column] - best[column], 4) > 0.0]
    return sorted(above, key=lambda row: -float(row[column]))


def _reason(result: JsonView, row: JsonView) -> str:
    chosen = str(result["leaderboard"][0]["solver"])
    if result.get("folds"):
        return "each fold chose by its own validation"
    if not row.get("is_served", True):
        return "a system that the study serves cannot load it"
    if chosen in BLENDS:
        return f"cross-validation does not prefer it to {chosen} significantly, and a blend is the safer choice"
    if row["solver"] in BLENDS:
        return f"cross-validation, with the weights made on other folds, prefers {chosen}"
    return "its final model does not keep the limits of the study"


def tuning_gained(result: JsonView) -> str:
    """Return what tuning gained on the test queries over the best of the solvers' defaults; "" if that is not known."""
    tuning = result.get("tuning")
    if tuning is None:
        return ""
    if tuning["gain_interval"] is None:
        return f"Gain of tuning: none, the model is the best of the solvers' defaults ({tuning['default']})."
    low, high = tuning["gain_interval"]
    if low is None:
        return "Gain of tuning: not known, the metric is defined on no test query."
    found = with_ends(tuning, "gain")
    text = f"Gain of tuning on test: {found} over the best of the solvers' defaults ({tuning['default']})."
    delivered = "what validation chose is delivered, because test takes no part in the choice"
    if high < 0.0:
        return f"{text} Tuning did not help here: on these test queries the defaults are better; {delivered}."
    if tuning["gain"] < 0.0:
        return f"{text} Tuning did not help here: the interval holds 0, the defaults are as good; {delivered}."
    return text


def clicks_and_judgments(result: JsonView) -> str:
    """Return where clicks and judgments disagree, and what the click log has; "" without one."""
    found = result.get("clicks")
    if found is None:
        return ""
    own, beside, best, chosen = result["metric"], found["metric"], found["best"], result["best"]["solver"]
    if not best:
        text = f"No test query has clicks and judgments, so that {own} and {beside} are not compared."
    elif found["beside"] is None:
        text = f"On test {beside} would choose {chosen} too."
    else:
        clear = "" if found["beside_interval"][0] > 0.0 else ", which is not significant"
        text = (
            f"On test {beside} would choose {best}: {with_ends(found, 'beside')} {beside} against {chosen}{clear}, "
            f"and {with_ends(found, 'own')} {own}."
        )
    metric = own if is_of_clicks(own) else beside
    return f"{text} The choice followed {own}. {of_log(found['log'], metric)}"


def of_log(log: JsonView, metric: str) -> str:
    """Return how much of the data a click log has, and what does not count."""
    clipped = log["clipped"][metric.partition("@")[0].partition(":")[0]]
    unknown = log["unknown"]
    left_out = f" {unknown:,} impressions at positions of unknown examination do not count." if unknown else ""
    return (
        f"The log has {log['searches_of_data']:,} searches of {log['queries_in_log']:,} of {log['queries']:,} queries; "
        f"{log['never_shown']:,} of their {log['documents']:,} documents were never shown, and count as not clicked. "
        f"{clipped:.1%} of the clicks have their weight clipped to {log['clip']:g}.{left_out}"
    )
