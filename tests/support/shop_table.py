"""A table of a shop as a warehouse gives it: ids, texts, money, dates, what came after the ranking, and a few features.

What is sold for is what matches, is cheap and is new; `clicks` and what follows them are made by the grade.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl

WORDS = "red blue warm light trail running rain down wool leather summer winter men women kids shoe jacket hat".split()


def shop_table(
    renamed: Mapping[str, str] | None = None, *, queries: int = 300, length: int = 10, seed: int = 0
) -> pl.DataFrame:
    """Return 30 columns, some of them under other names."""
    generator, n = np.random.default_rng(seed), queries * length
    query, place = np.repeat(np.arange(queries), length), np.tile(np.arange(1, length + 1), queries)
    match, text_match = generator.gamma(2.0, 2.0, n), generator.gamma(3.0, 2.0, n)
    price, age, stars = generator.lognormal(5.0, 1.5, n), generator.integers(1, 700, n), generator.normal(4.0, 0.5, n)
    wish = match + 0.4 * text_match - 0.5 * np.log(price) - age / 300 + generator.normal(0.0, 1.5, n)
    grade = np.digitize(wish, np.quantile(wish, [0.6, 0.85, 0.95]))
    clicks = generator.poisson(0.3 + 4.0 * grade)
    orders = generator.binomial(np.maximum(clicks, 1), 0.3 * (grade > 1) + 0.002)
    days, searched = np.datetime64("2026-03-01"), np.repeat(generator.integers(0, 60, queries), length)

    def sentence(count: int) -> str:
        return " ".join(generator.choice(WORDS, count))

    texts = [sentence(2) for _ in range(queries)]
    table = pl.DataFrame({
        "query": [texts[q] for q in query],
        "query_id": [f"q{q:04}" for q in query],
        "search_date": (days + searched).astype(str),
        "id": [f"SKU-{k:06}" for k in generator.permutation(n)],
        "title": [f"{sentence(3)} {k}" for k in range(n)],
        "description": [f"{sentence(12)}, no. {k}" for k in range(n)],
        "url": [f"https://shop.example/p/{k}?ref=a,b" for k in range(n)],
        "price": [f"${value:,.2f}" for value in price],
        "list_price": [f"${1.1 * value:,.2f}" for value in price],
        "discount": [f"{value:.0f}%" for value in generator.uniform(0, 60, n)],
        "margin": [f"{value:.1f}%" for value in generator.uniform(5, 40, n)],
        "published": (days + searched - age).astype(str),
        "restocked": (days - generator.integers(1, 90, n)).astype(str),
        "brand": generator.choice([f"brand {k}" for k in range(12)], n),
        "category": [f"c{k:04}" for k in np.minimum(generator.geometric(0.002, n), 2000)],
        "colour": generator.choice(["red", "blue", "black", "white"], n),
        "size": generator.choice(["S", "M", "L"], n),
        "in_stock": generator.random(n) < 0.9,
        "stock": generator.integers(0, 500, n),
        "weight_kg": generator.lognormal(0.0, 0.4, n).round(2),
        "stars": [None if value > 4.6 else round(value, 1) for value in stars],
        "reviews": generator.poisson(30, n),
        "bm25_title": match.round(4),
        "bm25_text": text_match.round(4),
        "clicks_last_30_days": generator.poisson(20.0 + 4.0 * grade),
        "past_ctr": (0.05 + 0.01 * grade + generator.normal(0.0, 0.02, n)).clip(0.0).round(4),
        "position": place,
        "clicks": clicks,
        "orders": orders,
        "grade": grade,
    })  # fmt: skip
    return table.rename(dict(renamed or {})).sample(fraction=1.0, shuffle=True, seed=seed)
