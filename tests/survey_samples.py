"""Tables of three sites that differ in size, scale, levels and missing cells, and the same rows in one pandas table."""

import numpy as np
import pandas as pd

from amble.data.files import read_table
from amble.survey.agreement import Wanted, agree

SIZES = {"north": 7, "east": 40, "south": 101}


def frames(seed=0, sizes=SIZES, gaps=0.0):
    """Per site: numbers far from zero, a constant, a column of text, and three kinds of targets."""
    rng = np.random.default_rng(seed)
    tables = {}
    for k, (site, rows) in enumerate(sizes.items()):
        frame = pd.DataFrame(
            {
                "age": rng.integers(18, 90, rows),
                "income": 1e9 + (k + 1) * rng.normal(size=rows),
                "same": np.full(rows, 0.1),
                "town": rng.choice(["Ulm", "Bonn", "Köln", f"only {site}"], rows),
                "bmi": 20 + k + rng.gamma(2.0, size=rows),
                "years": rng.uniform(0.5, 3.0, rows),
                "weight": rng.uniform(0.1, 2.0, rows),
                "visits": rng.poisson(2.0, rows),
                "died": rng.integers(0, 2, rows),
                "cost": rng.normal(5e3, 700.0, rows),
            }
        )
        holes = rng.random((rows, 3)) < gaps
        frame["age"] = frame["age"].astype(float)
        for column, hole in zip(("age", "town", "bmi"), holes.T, strict=True):
            frame.loc[hole, column] = np.nan
        tables[site] = frame
    return tables


def tables_of(folder, data):
    """The tables as files hold them."""
    for site, frame in data.items():
        frame.to_csv(folder / f"{site}.csv", index=False)
    return {site: read_table(folder / f"{site}.csv", None, None) for site in data}


def agreed(tables, **settings):
    wanted = Wanted(**settings)
    return agree({site: wanted.describe(table) for site, table in tables.items()}, wanted)


def pooled(data):
    """The rows of all sites, in the order of their names."""
    return pd.concat([data[site] for site in sorted(data)], ignore_index=True)
