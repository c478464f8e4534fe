"""Table one: what pandas says of all rows, without them."""

import numpy as np
import pandas as pd
import pytest

from amble.errors import AmbleError
from amble.survey.document import describe
from amble.survey.table_one import ALL, as_text, table_one
from survey_samples import frames, pooled, tables_of

NUMBERS = ("age", "income", "same", "bmi", "cost")


def documents(folder, data):
    return {site: describe(table, "cost") for site, table in tables_of(folder, data).items()}


def test_the_statistics_are_those_of_the_pooled_rows(tmp_path):
    data = frames(gaps=0.1)
    table = pd.DataFrame(table_one(documents(tmp_path, data), sites=True))
    for site, rows in {ALL: pooled(data), **data}.items():
        found = table[table["site"] == site].set_index("column")
        for name in NUMBERS:
            column, row = rows[name], found.loc[name]
            assert (row["count"], row["missing"]) == (column.count(), column.isna().sum())
            assert (row["min"], row["max"]) == (column.min(), column.max())
            assert row["mean"] == pytest.approx(column.mean(), rel=1e-14)
            assert row["deviation"] == pytest.approx(column.std(), rel=1e-9, abs=1e-15)
        levels = found.loc["town"].set_index("level")
        assert levels["count"].to_dict() == rows["town"].value_counts().to_dict()
        np.testing.assert_allclose(levels["share"], rows["town"].value_counts(normalize=True)[levels.index])


def test_without_sites_there_are_the_rows_of_all_only(tmp_path):
    rows = table_one(documents(tmp_path, frames()))
    assert {row["site"] for row in rows} == {ALL}
    assert [row["column"] for row in rows][:4] == ["age", "income", "same", "town"]


@pytest.mark.parametrize("sites", [False, True])
def test_the_text_is_at_most_80_characters_wide(tmp_path, sites):
    data = frames(sizes={f"site-{'x' * k}": 5 + k for k in range(30)}, gaps=0.1)
    for frame in data.values():
        frame["a name that is longer than its column of the table"] = -1.2345e99
        frame["town"] = frame["town"].astype(str) + " on the river of a very long name"
    text = as_text(documents(tmp_path, data), sites)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("\n\n") == (10 if sites else 0)  # 31 columns, three side by side


def test_the_text_says_what_the_rows_say(tmp_path):
    data = {
        "north": pd.DataFrame({"age": [30.0, np.nan, 50.0], "town": ["Ulm", "Ulm", "Bonn"], "cost": [1.5, 2.5, 3.5]}),
        "south": pd.DataFrame({"age": [40.0], "town": ["Ulm"], "cost": [12.5]}),
    }
    described = documents(tmp_path, data)
    assert as_text(described).splitlines() == [
        "                         count       mean  deviation       min       max missing",
        "age                          3         40         10        30        50       1",
        "town                         4                                                 0",
        "  Bonn                       1     25.0 %",
        "  Ulm                        3     75.0 %",
        "cost                         4          5      5.066       1.5      12.5       0",
    ]
    assert as_text(described, sites=True).splitlines() == [
        "                               all sites               north               south",
        "rows                                   4                   3                   1",
        "age                              40 (10)          40 (14.14)                  40",
        "  missing                              1                   1                   0",
        "town",
        "  Bonn                        1 (25.0 %)          1 (33.3 %)           0 (0.0 %)",
        "  Ulm                         3 (75.0 %)          2 (66.7 %)         1 (100.0 %)",
        "cost                           5 (5.066)             2.5 (1)                12.5",
    ]


def test_a_column_that_a_site_lacks_or_that_has_many_texts_is_shown_all_the_same(tmp_path):
    data = frames(sizes={"a": 120, "b": 90})
    data["a"]["id"] = [f"p{k}" for k in range(120)]
    text = as_text(documents(tmp_path, data), sites=True)
    assert "no such column" in text
    assert "120 texts" in text
    assert "120 texts" in as_text(documents(tmp_path, data))


def test_numbers_at_one_site_and_text_at_another_are_refused(tmp_path):
    data = frames()
    data["north"]["age"] = "old"
    with pytest.raises(AmbleError, match="'age' is text at north"):
        table_one(documents(tmp_path, data))
