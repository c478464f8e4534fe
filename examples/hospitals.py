"""Writes examples/hospitals: three made-up tables, as three hospitals that may not pool their rows would have them."""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "hospitals"
ROWS = {"north": 70, "east": 45, "south": 110}
HEADER = "age,bmi,ward,stay_days,readmitted"


def main() -> None:
    rng = np.random.default_rng(7)
    FOLDER.mkdir(exist_ok=True)
    for k, (name, rows) in enumerate(ROWS.items()):
        age = rng.normal(58 + 6 * k, 12, rows).round(0)
        bmi = rng.normal(26, 4, rows).round(1)
        ward = rng.choice(["medical", "surgical", "cardiac"][: 2 + (k > 0)], rows)
        stay = rng.gamma(2.0, 2.5 + k, rows).round(1)
        odds = -3.2 + 0.03 * age + 0.02 * (bmi - 26) + 0.08 * stay + np.where(ward == "surgical", -0.6, 0.0)
        again = np.where(rng.random(rows) < 1 / (1 + np.exp(-odds)), "yes", "no")
        weights = [f"{value:.1f}" for value in bmi]
        if name == "east":
            weights[4] = weights[20] = ""  # was not measured
        lines = [f"{a:.0f},{b},{w},{s:.1f},{y}" for a, b, w, s, y in zip(age, weights, ward, stay, again, strict=True)]
        (FOLDER / f"{name}.csv").write_text("\n".join([HEADER, *lines, ""]))


if __name__ == "__main__":
    main()
