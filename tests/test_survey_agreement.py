"""The agreement of sites is what one would have got from all their rows in one table."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from amble.errors import AmbleError
from amble.problem.assemble import fit_scaling, prepare
from amble.problem.extras import Extras
from amble.survey.agreement import Wanted, agree, from_json
from survey_samples import SIZES, agreed, frames, pooled, tables_of

FEATURES = ("age", "income", "same", "town", "bmi")


def treated(data, missing, columns=FEATURES):
    """The rows of all sites in one table, treated by pandas; in the order of the sites' names."""
    rows = pooled(data)
    if missing == "drop":
        rows = rows.dropna(subset=list(columns))
    for name in columns if missing == "mean" else ():
        rows[name] = rows[name].fillna(rows[name].mode()[0] if name == "town" else rows[name].mean())
    dummies = pd.get_dummies(rows[list(columns)], columns=["town"], prefix_sep="=", drop_first=True, dtype=float)
    return rows, dummies


@pytest.mark.parametrize("missing", ["refuse", "mean", "drop"])
def test_scaling_and_rows_are_those_of_the_pooled_table(tmp_path, missing):
    """Uneven sites, a constant column, a column near 1e9, levels that one site alone has, and missing cells."""
    data = frames(gaps=0.0 if missing == "refuse" else 0.15)
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="cost", columns=FEATURES, missing=missing)
    rows, dummies = treated(data, missing)
    assert sorted(agreement.columns) == sorted(dummies.columns)
    dummies = dummies[list(agreement.columns)]
    expected = fit_scaling(dummies.to_numpy(), rows["cost"].to_numpy(), True, "identity")
    for found, right in zip(agreement.scaling, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-15)
    assert agreement.scaling.X_std[agreement.columns.index("same")] == 1.0
    X = np.concatenate([agreement.rows(tables[site], site).X for site in sorted(tables)])
    np.testing.assert_allclose(X, dummies.to_numpy(), rtol=1e-14)
    y = np.concatenate([agreement.rows(tables[site], site).y for site in sorted(tables)])
    np.testing.assert_array_equal(y, rows["cost"])
    left = {site: len(agreement.rows(tables[site], site).y) for site in tables}
    assert {site.name: site.rows for site in agreement.sites} == left
    assert agreement.shares == {site: pytest.approx(3 * count / sum(left.values())) for site, count in left.items()}
    assert (agreement.task, agreement.loss) == ("regression", "least-squares")


@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_sums_over_sites_in_agreed_units_give_the_least_squares_fit_of_the_pooled_table(tmp_path, missing):
    """Each site sends X'X and X'y in the agreed units; the fit, in original units, is that of one table."""
    data = frames(gaps=0.15)
    tables = tables_of(tmp_path, data)
    columns = ("age", "income", "town", "bmi")
    agreement = agreed(tables, target="cost", columns=columns, missing=missing)
    scaling, p = agreement.scaling, len(agreement.columns)
    gram, moment = np.zeros((p + 1, p + 1)), np.zeros(p + 1)
    for site, table in tables.items():
        rows = agreement.rows(table, site)
        X = prepare(rows.X, scaling, agreement.intercept)
        gram, moment = gram + X.T @ X, moment + X.T @ ((rows.y - scaling.y_mean) / scaling.y_std)
    slopes = np.linalg.solve(gram, moment)[:p] * scaling.y_std / scaling.X_std
    rows, dummies = treated(data, missing, columns)
    centred = dummies[list(agreement.columns)] - dummies[list(agreement.columns)].mean()
    expected = np.linalg.lstsq(centred.to_numpy(), (rows["cost"] - rows["cost"].mean()).to_numpy())[0]
    np.testing.assert_allclose(slopes, expected, rtol=1e-6)  # income is near 1e9, with noise of 1


def test_moments_of_all_sites_are_stable_far_from_zero(tmp_path):
    data = frames(sizes={"a": 500, "b": 3, "c": 2000})
    agreement = agreed(tables_of(tmp_path, data), target="cost", columns=("income",))
    noise = pooled(data)["income"].to_numpy() - 1e9
    assert agreement.X_std[0] == pytest.approx(noise.std(), rel=1e-9)
    assert agreement.X_mean[0] - 1e9 == pytest.approx(noise.mean(), abs=3e-7)  # float64 near 1e9 steps by 1.2e-7


@pytest.mark.parametrize("missing", ["refuse", "mean", "drop"])
def test_weights_count_in_the_scaling_and_the_shares(tmp_path, missing):
    data = frames(gaps=0.0 if missing == "refuse" else 0.15)
    for frame in data.values():
        frame.loc[:1, "weight"] = 0.0  # such rows are as good as absent
    tables = tables_of(tmp_path, data)
    columns = ("age", "town", "bmi")
    agreement = agreed(tables, target="cost", columns=columns, weight="weight", missing=missing)
    held = [agreement.rows(tables[site], site) for site in sorted(tables)]
    X, y, weight = (np.concatenate([getattr(rows, key) for rows in held]) for key in ("X", "y", "sample_weight"))
    there = pooled(data)[lambda rows: rows["weight"] > 0]
    assert len(y) == len(there.dropna() if missing == "drop" else there)
    expected = fit_scaling(X, y, True, "identity", extra=Extras(weight))
    for found, right in zip(agreement.scaling, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)
    sums = {site: rows.sample_weight.sum() for site, rows in zip(sorted(tables), held, strict=True)}
    assert agreement.shares == {site: pytest.approx(3 * each / weight.sum()) for site, each in sums.items()}
    if missing == "mean":
        rows = there[there["bmi"].notna()]
        assert agreement.features[2].fill == pytest.approx(np.average(rows["bmi"], weights=rows["weight"]))


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize(
    "extra", [{}, {"exposure": "years"}, {"exposure": "years", "offset": "bmi", "weight": "weight"}]
)
def test_a_log_link_starts_at_the_base_rate(tmp_path, loss, extra):
    data = frames()
    for frame in data.values():
        frame["visits"] += loss == "gamma"
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="visits", columns=("age",), loss=loss, **extra)
    rows = pooled(data)
    offset = (np.log(rows["years"]) if extra else 0.0) + (rows["bmi"] if "offset" in extra else 0.0)
    weight = rows["weight"].to_numpy() if "weight" in extra else None
    offset = offset.to_numpy() if extra else None
    expected = fit_scaling(
        rows[["age"]].to_numpy(), rows["visits"].to_numpy(), True, "log", extra=Extras(weight, offset)
    )
    assert agreement.y_mean == pytest.approx(expected.y_mean, rel=1e-11)  # it is rounded, so that all sites agree
    assert agreement.y_std == 1.0
    found = agreement.rows(tables["east"], "east").offset
    if extra:
        np.testing.assert_allclose(found, offset[: SIZES["east"]], rtol=1e-14)
    else:
        assert found is None


def test_times_of_censored_rows_have_a_minus_and_cox_has_no_intercept(tmp_path):
    data = frames()
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="years", event="died", columns=("age", "town"), loss="cox")
    east = data["east"]
    np.testing.assert_array_equal(
        agreement.rows(tables["east"], "east").y, np.where(east["died"] == 1, east["years"], -east["years"])
    )
    assert (agreement.intercept, agreement.y_mean, agreement.y_std) == (False, 0.0, 1.0)
    assert "town=Bonn" not in agreement.columns  # the baseline hazard takes the place of an intercept
    assert agreement.X_mean[0] == pytest.approx(pooled(data)["age"].mean())


def test_without_an_intercept_nothing_is_shifted_and_every_level_has_a_column(tmp_path):
    tables = tables_of(tmp_path, frames())
    agreement = agreed(tables, target="cost", columns=("age", "town"), intercept=False)
    assert "town=Bonn" in agreement.columns
    assert not any(agreement.X_mean)
    assert agreement.y_mean == 0
    town = agreement.rows(tables["east"], "east").X[:, 1:]
    np.testing.assert_array_equal(town.sum(axis=1), 1.0)


def test_without_scaling_rows_stay_in_their_units(tmp_path):
    scaling = agreed(tables_of(tmp_path, frames()), target="cost", columns=("age",), scale=False).scaling
    assert [np.ravel(each).tolist() for each in scaling] == [[0.0], [1.0], [0.0], [1.0]]


def test_labels_are_those_of_all_sites(tmp_path):
    data = frames()
    for site, frame in data.items():
        frame["kind"] = np.where(frame["died"] == 1, "yes", f"no at {site}")
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="kind", columns=("age",))
    assert agreement.labels == ("no at east", "no at north", "no at south", "yes")
    assert (agreement.task, agreement.loss) == ("classification", "softmax")
    assert agreement.rows(tables["east"], "east").y.tolist() == data["east"]["kind"].tolist()
    agreement = agreed(tables, target="died", columns=("age",))
    assert (agreement.labels, agreement.loss) == ((0, 1), "logistic")
    assert agreement.rows(tables["east"], "east").y.dtype == np.int64
    assert agreed(tables, target="died", columns=("age",), loss="squared").task == "regression"
    assert agreed(tables, target="died", columns=("age",), task="regression").loss == "least-squares"


def test_the_order_of_sites_makes_no_difference_bit_for_bit(tmp_path):
    tables = tables_of(tmp_path, frames(gaps=0.1))
    wanted = Wanted(target="cost", columns=FEATURES, missing="mean", weight="weight")
    documents = {site: wanted.describe(table) for site, table in tables.items()}
    texts = {agree({site: documents[site] for site in order}, wanted).to_json() for order in permutations(documents)}
    assert len(texts) == 1


def test_without_named_columns_the_first_site_gives_their_order(tmp_path):
    data = {site: frame[["bmi", "town", "age", "cost"]] for site, frame in frames().items()}
    data["south"] = data["south"][["age", "cost", "bmi", "town"]]
    agreement = agreed(tables_of(tmp_path, data), target="cost")
    assert [feature.name for feature in agreement.features] == ["bmi", "town", "age"]


def test_a_row_without_its_target_is_left_out_under_every_policy_but_refuse(tmp_path):
    data = frames(gaps=0.1)
    data["east"].loc[3, "cost"] = np.nan
    tables = tables_of(tmp_path, data)
    rows = pooled(data).dropna(subset=["cost"])
    agreement = agreed(tables, target="cost", columns=("age", "bmi"), missing="mean")
    assert agreement.features[1].fill == pytest.approx(rows["bmi"].mean(), rel=1e-14)
    assert agreement.X_std[1] == pytest.approx(rows["bmi"].fillna(rows["bmi"].mean()).std(ddof=0))
    assert len(agreement.rows(tables["east"], "east").y) == SIZES["east"] - 1


def test_a_column_that_one_site_never_filled_in_is_filled_with_the_others_mean(tmp_path):
    data = frames()
    data["north"][["bmi", "town"]] = np.nan
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="cost", columns=("bmi", "town"), missing="mean")
    rows = pooled(data)
    X = agreement.rows(tables["north"], "north").X
    np.testing.assert_allclose(X[:, 0], rows["bmi"].mean(), rtol=1e-14)
    chosen = [float(name == f"town={rows['town'].mode()[0]}") for name in agreement.columns[1:]]
    np.testing.assert_array_equal(X[:, 1:], [chosen] * SIZES["north"])


def test_a_site_that_comes_later_is_encoded_as_agreed_and_strange_levels_are_refused(tmp_path):
    data = frames()
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="died", columns=("age", "town"), loss="logistic")
    late = pd.DataFrame({"town": ["Bonn", "Ulm"], "extra": [1, 2], "died": [1, 1], "age": [30, 40]})
    rows = agreement.rows(tables_of(tmp_path, {"late": late})["late"], "late")
    assert rows.X[:, 0].tolist() == [30.0, 40.0]
    assert rows.X[:, agreement.columns.index("town=Ulm")].tolist() == [0.0, 1.0]

    def refused(sentence, **change):
        table = tables_of(tmp_path, {"late": late.assign(**change)})["late"]
        with pytest.raises(AmbleError, match=sentence):
            agreement.rows(table, "late")

    refused("line 3, column town holds 'Paris', a level that no site had in the survey", town=["Bonn", "Paris"])
    refused("late has labels that no site had in the survey: 2; they had 0, 1", died=[1, 2])
    refused("column 'town' holds numbers, and the sites agreed on text", town=[1, 2])
    refused("column 'age' holds text, and the sites agreed on numbers", age=["30", "old"])
    refused("late has 1 missing cell in 'age'; fill them, or set missing", age=[30, None])
    with pytest.raises(AmbleError, match=r"no column of .* named 'age'"):
        agreement.rows(tables_of(tmp_path, {"late": late.drop(columns="age")})["late"], "late")


def test_rows_to_predict_for_need_no_target_and_keep_their_places(tmp_path):
    data = frames(gaps=0.2)
    tables = tables_of(tmp_path, data)
    agreement = agreed(tables, target="cost", columns=("age", "town"), missing="mean")
    new = tables_of(tmp_path, {"new": data["east"][["town", "age"]]})["new"]
    np.testing.assert_array_equal(agreement.encode(new, "new"), agreement.rows(tables["east"], "east").X)
    strict = agreed(tables, target="cost", columns=("age", "town"), missing="drop")
    with pytest.raises(AmbleError, match=r"new has .* missing cells in 'age'; fill them, or leave such rows out"):
        strict.encode(new, "new")


# --- what sites disagree about ---------------------------------------------------------------------------------------


def change(site, **columns):
    def changed(data):
        data[site] = data[site].assign(**columns)

    return changed


def drop(name, *sites):
    def changed(data):
        for site in sites:
            data[site] = data[site].drop(columns=name)

    return changed


def hole(site, name, *rows):
    def changed(data):
        data[site].loc[list(rows), name] = None

    return changed


@pytest.mark.parametrize(
    ("changed", "settings", "sentence"),
    [
        (drop("age", "north"), {}, "site north has no column 'age', which east and south have; add it, or name"),
        (drop("age", "north", "east"), {}, "site south has a column 'age', which east and north lack; drop it"),
        (change("north", age="old"), {}, r"'age' is text at north \('old', for example\) and numbers elsewhere"),
        (change("north", town=3), {}, r"'town' is numbers at north and text elsewhere \('Bonn', for example\)"),
        (change("north", cost="much"), {}, r"'cost' is text at north \('much', for example\) and numbers elsewhere"),
        (hole("north", "bmi", 1, 2, 4), {}, "north has 3 missing cells in 'bmi'; fill them, or set missing ="),
        (hole("north", "bmi", *range(7)), {"missing": "drop"}, "no row of north can be used: 7 of 7 cells of 'bmi'"),
        (change("east", weight=0), {"weight": "weight"}, "no row of east can be used: no row has a weight above zero"),
        (change("north", age=None), {"missing": "drop"}, "no row of north can be used: 7 of 7 cells of 'age'"),
        (lambda _: None, {"target": "same", "task": "classification"}, "all labels are 0.1 at all sites"),
        (lambda _: None, {"target": "town", "task": "regression"}, "'town' is text, and regression needs numbers"),
        (lambda _: None, {"target": "cost", "task": "classification"}, "south has .* different values in 'cost'"),
        (lambda _: None, {"loss": "logistic", "task": "regression"}, 'task = "regression" and loss = "logistic"'),
        (lambda _: None, {"loss": "cox"}, "loss = \"cox\" and an event column need each other"),
        (lambda _: None, {"event": "died"}, "loss = \"cox\" and an event column need each other"),
        (lambda _: None, {"offset": "bmi"}, "least-squares has no log link; leave it out, or choose poisson or gamma"),
        (change("north", cost=-2), {"loss": "poisson"}, "'cost' of north: poisson needs counts of zero or more"),
        (change("north", cost=0), {"loss": "gamma"}, "'cost' of north: gamma needs amounts above zero, and there is 0"),
        (change("north", cost=0), {"loss": "cox", "event": "died"}, "'cost' of north: cox needs times above zero"),
        (lambda _: None, {"missing": "median"}, "no way to treat missing cells named 'median'"),
        (lambda _: None, {"loss": "hinge"}, "no loss named 'hinge'"),
        (lambda _: None, {"ridge": 0.0}, "'same' is 0.1 in all rows of all sites, so they do not determine its coeff"),
    ],
)  # fmt: skip
def test_a_disagreement_names_the_site_and_the_column(tmp_path, changed, settings, sentence):
    data = frames()
    changed(data)
    with pytest.raises(AmbleError, match=sentence):
        agreed(tables_of(tmp_path, data), **{"target": "cost", **settings})


def test_one_site_may_have_zeros_only_but_not_all(tmp_path):
    data = frames()
    data["north"]["visits"] = 0
    data["north"]["died"] = 0
    tables = tables_of(tmp_path, data)
    assert agreed(tables, target="visits", loss="poisson").loss == "poisson"
    assert agreed(tables, target="years", event="died", loss="cox").loss == "cox"
    for frame in data.values():
        frame["visits"] = frame["died"] = 0
    tables = tables_of(tmp_path, data)
    with pytest.raises(AmbleError, match="poisson needs counts, and all of them are zero"):
        agreed(tables, target="visits", loss="poisson")
    with pytest.raises(AmbleError, match="cox needs events, and every row of every site is censored"):
        agreed(tables, target="years", event="died", loss="cox")


def test_documents_made_with_other_settings_are_refused(tmp_path):
    tables = tables_of(tmp_path, frames(gaps=0.2))
    wanted = Wanted(target="cost", columns=("age", "bmi"), missing="drop")
    documents = {site: wanted.describe(table) for site, table in tables.items()}
    for other, sentence in [
        (Wanted(target="cost", columns=("age", "bmi"), missing="mean"), 'described its table for missing = "mean"'),
        (Wanted(target="cost", columns=("age",), missing="drop"), "site east has no column 'bmi', which north and"),
        (Wanted(target="cost", columns=("age", "bmi", "years"), missing="drop"), "east described 'years', which"),
        (
            Wanted(target="visits", columns=("age", "bmi"), missing="drop"),
            "the target is 'visits' at east and 'cost' at",
        ),
        (
            Wanted(target="cost", weight="weight", columns=("age", "bmi"), missing="drop"),
            "the weight is 'weight' at east",
        ),
    ]:
        with pytest.raises(AmbleError, match=sentence):
            agree({**documents, "east": other.describe(tables["east"])}, wanted)
    with pytest.raises(AmbleError, match="no site has described its table"):
        agree({}, wanted)


def test_a_column_of_many_texts_is_refused_by_name(tmp_path):
    data = frames(sizes={"a": 120, "b": 90})
    for site, frame in data.items():
        frame["id"] = [f"{site}-{k}" for k in range(len(frame))]
    with pytest.raises(
        AmbleError, match="a has 120 different values in 'id', and a column of categories has at most 100"
    ):
        agreed(tables_of(tmp_path, data), target="cost")


def test_two_columns_of_one_name_after_encoding_are_refused(tmp_path):
    data = {site: frame.assign(**{"town=Ulm": 1.0}) for site, frame in frames().items()}
    with pytest.raises(AmbleError, match="two columns are named 'town=Ulm' when encoded"):
        agreed(tables_of(tmp_path, data), target="cost", columns=("town", "town=Ulm"))
    with pytest.raises(AmbleError, match="needs a column that varies"):
        agreed(tables_of(tmp_path, {"a": data["north"].assign(town="Ulm")}), target="cost", columns=("town",))


# --- as text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cost", "died", "town"])
def test_an_agreement_comes_back_from_its_text(tmp_path, target):
    columns = tuple(name for name in ("age", "town", "bmi") if name != target)
    agreement = agreed(tables_of(tmp_path, frames(gaps=0.1)), target=target, columns=columns, missing="mean")
    assert from_json(agreement.to_json(), "model.npz") == agreement


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ["age"]}, {"columns": 3}, {"X_std": [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]}, {"y_std": "1"}, {"task": "x"},
        {"missing": None}, {"loss": "hinge"}, {"intercept": 1}, {"labels": [None]}, {"target": ""}, {"y_mean": None},
        {"features": [{"name": "age"}]}, {"sites": [{"name": 1, "rows": 1, "weight": 1.0}]}, {"unknown": 1},
        {"features": [{"name": "town", "levels": ["a"], "fill": "b"}]}, {"weight": 5}, {"ridge": [1]},
    ],
)  # fmt: skip
def test_an_agreement_that_cannot_be_is_refused(tmp_path, change):
    text = agreed(tables_of(tmp_path, frames()), target="cost", columns=("age", "town")).to_json()
    for wrong in (json.dumps(json.loads(text) | change), text[:-1], "[]", "null", "{}", "[" * 100_000):
        with pytest.raises(AmbleError, match=r"model.npz holds no valid agreement of sites"):
            from_json(wrong, "model.npz")
