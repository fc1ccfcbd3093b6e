"""Small click logs, and a reader of events that is written another way: line by line, with dictionaries."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ranktune.solvers.clicks.reading.click_log import ClickLog

Event = dict[str, object]
Shown = tuple[str, str, int, float]
BASE = 1_700_000_000_000


def written(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write rows as csv, or as JSON lines where the path says so."""
    if path.suffix == ".csv":
        titles = list(dict.fromkeys(name for row in rows for name in row))
        lines = [titles, *([str(row.get(name, "")) for name in titles] for row in rows)]
        path.write_text("".join(f"{','.join(line)}\n" for line in lines))
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def impressions(log: ClickLog) -> Counter[Shown]:
    """Return the impressions of a log: query, document, position, weight of what happened."""
    return Counter(
        (batch.queries[q], batch.documents[d], p, c)
        for batch in log
        for q, d, p, c in zip(
            *(values.tolist() for values in (batch.query, batch.document, batch.position, batch.click)), strict=True
        )
    )


def iso(time: int) -> str:
    """Return milliseconds as text."""
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def random_events(seed: int, searches: int = 60) -> list[Event]:
    """Return queries and events in any order, with faults: no partners, repetitions, duplicates, other documents."""
    generator = np.random.default_rng(seed)
    events: list[Event] = []
    for number in range(searches):
        common = {"query_id": f"i{number}", "session_id": f"s{number // 3}"}
        time = BASE + number * 60_000
        if generator.random() < 0.9:
            events.append({**common, "user_query": f"q{generator.integers(7)}", "timestamp": iso(time)})
        for position in range(1, int(generator.integers(1, 6))):
            item = {**common, "document": f"d{position}", "position": position}
            events.append({**item, "action_name": "impression", "timestamp": iso(time + position)})
            for kind in ("click", "add_to_cart", "hover"):
                for _ in range(int(generator.poisson(0.3))):
                    late = time + int(generator.integers(100, 9000))
                    at = late if generator.random() < 0.5 else iso(late)
                    changed = {"document": "another"} if generator.random() < 0.1 else {}
                    events.append({**item, **changed, "action_name": kind, "timestamp": at})
        if generator.random() < 0.2:
            events.append({**common, "document": "d99", "action_name": "click", "timestamp": time + 50})
    events += [events[int(k)] for k in generator.integers(0, len(events), 8)]
    return [events[int(k)] for k in generator.permutation(len(events))]


def by_hand(events: Iterable[Event], weights: Mapping[str, float]) -> tuple[Counter[Shown], Counter[str]]:
    """Return the impressions in events without faults but those of `random_events`, and what became of the events."""
    fates: Counter[str] = Counter()
    texts: dict[object, str] = {}
    shown: dict[tuple[object, object], list[object]] = {}
    places: set[tuple[object, object]] = set()
    seen: set[str] = set()
    used: set[tuple[object, ...]] = set()
    rest: list[Event] = []
    for event in events:
        time = event["timestamp"]
        time = int(datetime.fromisoformat(time).timestamp() * 1000 + 0.5) if isinstance(time, str) else time
        same = json.dumps({**event, "timestamp": time}, sort_keys=True)
        if "action_name" not in event:
            fates["a further record of a query"] += event["query_id"] in texts
            texts.setdefault(event["query_id"], str(event["user_query"]))
        elif event["action_name"] == "hover":
            fates["an action without a weight: hover"] += 1
        elif same in seen:
            fates["a duplicate"] += 1
        else:
            seen.add(same)
            rest.append(event)
    for event in rest:
        search = event["query_id"]
        if event["action_name"] == "impression" and search in texts:
            shown[search, event["document"]] = [texts[search], event["document"], event["position"], 0.0]
            places.add((search, event["position"]))
            fates["impression"] += 1
    for event in rest:
        search, kind, key = event["query_id"], str(event["action_name"]), (event["query_id"], event["document"])
        if search not in texts:
            fates["no partner query"] += 1
        elif kind == "impression":
            continue
        elif key not in shown:
            is_place = (search, event.get("position")) in places
            fates["another document was shown at its position" if is_place else "no impression in its search"] += 1
        elif (*key, kind) in used:
            fates["repeated for its impression"] += 1
        else:
            used.add((*key, kind))
            fates[kind] += 1
            shown[key][3] += weights.get(kind, 0.0)  # type: ignore[operator]
    of_query = {search for search, _ in shown}
    fates["query"] = len(of_query)
    fates["a query for which nothing was shown"] = len(texts) - len(of_query)
    return Counter(tuple(row) for row in shown.values()), +fates  # type: ignore[misc]
