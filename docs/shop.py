"""The files that pages speak of: python -m ranktune.docs.shop FOLDER [clicks|interleaved].

A search log of an invented shop: 300 searches with 12 products each. `bought` is 0 (shown), 1 (put in the basket) or 2
(bought); products are bought that match the query, are cheap for it, and are new. shop.csv holds the older searches,
new.csv the most recent ones. today.txt has the scores that ranked new.csv, one a line, as today's ranking.

clicks.csv is a click log of the searches of shop.csv, 60 sessions each. Users look at place k with probability 1/k, and
click what they look at the likelier the better it is.

log.jsonl has 3,000 searches of 1,000 such users, of lists that are in shown.jsonl.
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np

SEARCHES, PRODUCTS, NEW = 300, 12, 60
COLUMNS = "search day sku brand price rating stock published bm25_title bm25_text bought".split()
BRANDS = ("Alder", "Birch", "Cedar", "Elm")


def write_shop(folder: Path, seed: int = 0) -> None:
    """Write shop.csv, new.csv and today.txt into a folder."""
    generator = np.random.default_rng(seed)
    older, recent, scores = list[list[object]](), list[list[object]](), list[str]()
    for search in range(SEARCHES):
        day = date(2026, 1, 1) + timedelta(days=search // 4)
        price = generator.lognormal(3, 0.6, PRODUCTS).round(2)
        rating = np.where(generator.random(PRODUCTS) < 0.3, np.nan, generator.normal(4, 0.5, PRODUCTS).clip(1, 5))
        age = generator.integers(1, 800, PRODUCTS)
        title, text = generator.gamma(2, 2, PRODUCTS).round(3), generator.gamma(3, 2, PRODUCTS).round(3)
        brand = generator.integers(0, len(BRANDS), PRODUCTS)
        wish = title * (0.5 + 0.1 * text) - 0.05 * price + 0.6 * (brand == 1) - age / 400
        wish = wish + np.nan_to_num(rating - 4) + generator.normal(0, 1.2, PRODUCTS)
        bought = np.digitize(wish - np.sort(wish)[-3], [0.0, 1.5]) * (wish > 0)
        for k in generator.permutation(PRODUCTS):
            published = day - timedelta(days=int(age[k]))
            stars = "" if np.isnan(rating[k]) else f"{rating[k]:.1f}"
            stock = int(generator.integers(0, 90))
            row: list[object] = [
                f"s{search:03}",
                day,
                f"p{search * PRODUCTS + k:05}",
                BRANDS[brand[k]],
                price[k],
                stars,
                stock,
            ]
            row += [published, title[k], text[k], bought[k]]
            (recent if search >= SEARCHES - NEW else older).append(row)
            if search >= SEARCHES - NEW:
                scores.append(f"{title[k] + 0.5 * text[k]:.3f}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("shop.csv", older), ("new.csv", recent)):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
    (folder / "today.txt").write_text("\n".join(scores) + "\n")


ATTRACTION = np.array([0.05, 0.4, 0.8])
"""How likely what is looked at is clicked, by `bought`."""


def write_clicks(folder: Path, sessions: int = 60, seed: int = 0) -> None:
    """Write clicks.csv into a folder that has shop.csv."""
    generator = np.random.default_rng(seed)
    with (folder / "shop.csv").open(newline="") as file:
        products = list(csv.DictReader(file))
    attraction = ATTRACTION[[int(row["bought"]) for row in products]].reshape(-1, PRODUCTS)
    rank = np.array([float(row["bm25_title"]) + 0.5 * float(row["bm25_text"]) for row in products])
    places = np.arange(1, PRODUCTS + 1)
    begun = datetime(2026, 3, 1)
    rows: list[object] = ["time,session,query,sku,rank,click"]
    for session, search in enumerate(generator.permutation(np.repeat(np.arange(len(attraction)), sessions))):
        shown = np.argsort(-rank[search * PRODUCTS :][:PRODUCTS] - generator.normal(0, 2, PRODUCTS))
        clicks = generator.random(PRODUCTS) < attraction[search, shown] / places
        time = (begun + timedelta(minutes=session)).isoformat()
        for place, k, click in zip(places, shown, clicks, strict=True):
            product = products[search * PRODUCTS + k]
            rows.append(f"{time},u{session:05},{product['search']},{product['sku']},{place},{int(click)}")
    (folder / "clicks.csv").write_text("\n".join(map(str, rows)) + "\n")


def write_interleaved(folder: Path, searches: int = 3000, users: int = 1000, seed: int = 0) -> None:
    """Write log.jsonl into a folder that has shop.csv and shown.jsonl: lists at random, with user and clicks."""
    generator = np.random.default_rng(seed)
    with (folder / "shop.csv").open(newline="") as file:
        attraction = {row["sku"]: ATTRACTION[int(row["bought"])] for row in csv.DictReader(file)}
    shown = [json.loads(line) for line in (folder / "shown.jsonl").read_text().splitlines()]
    with (folder / "log.jsonl").open("w") as log:
        for k in generator.integers(len(shown), size=searches):
            looked = generator.random(len(shown[k]["documents"])) * np.arange(1, len(shown[k]["documents"]) + 1)
            clicks = [n for n, sku in enumerate(shown[k]["documents"], 1) if looked[n - 1] < attraction[sku]]
            log.write(json.dumps({**shown[k], "user": f"u{generator.integers(users)}", "clicks": clicks}) + "\n")


if __name__ == "__main__":
    if "interleaved" in sys.argv[2:]:
        write_interleaved(Path(sys.argv[1]))
    else:
        write_shop(Path(sys.argv[1]))
    if "clicks" in sys.argv[2:]:
        write_clicks(Path(sys.argv[1]))
