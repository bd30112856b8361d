"""The columns of UCI Adult as a public schema, and its rows from the folder of data sets.

Names of columns and categories are those of the set's own documentation, adult.names (Becker and
Kohavi, 1996, CC BY 4.0). Bounds are round numbers chosen from what the columns mean.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from privmax.learning import Category, Number, Schema

LABELS: Final = ["<=50K", ">50K"]

_WORK = """
Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay,
Never-worked
"""
_EDUCATION = """
Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th,
Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool
"""
_MARITAL = """
Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent,
Married-AF-spouse
"""
_OCCUPATION = """
Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty,
Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving,
Priv-house-serv, Protective-serv, Armed-Forces
"""
_RELATIONSHIP = "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried"
_RACE = "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black"
_COUNTRY = """
United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc),
India, Japan, Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica,
Vietnam, Mexico, Portugal, Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti,
Columbia, Hungary, Guatemala, Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador,
Trinadad&Tobago, Peru, Hong, Holand-Netherlands
"""


def _listed(names: str, *, missing: str | None = None) -> Category:
    return Category(names.split(","), missing=missing)


ADULT: Final = Schema(
    {
        "age": Number(17, 90, cells=32),
        "workclass": _listed(_WORK, missing="?"),
        "fnlwgt": Number(0, 1_500_000, cells=32, scale="log"),
        "education": _listed(_EDUCATION),
        "education-num": Number(0.5, 16.5, cells=16),
        "marital-status": _listed(_MARITAL),
        "occupation": _listed(_OCCUPATION, missing="?"),
        "relationship": _listed(_RELATIONSHIP),
        "race": _listed(_RACE),
        "sex": Category(["Female", "Male"]),
        "capital-gain": Number(0, 100_000, cells=32, scale="log"),
        "capital-loss": Number(0, 5_000, cells=32, scale="log"),
        "hours-per-week": Number(1, 99, cells=32),
        "native-country": _listed(_COUNTRY, missing="?"),
    }
)
"""All 14 columns, in the order of the file."""


def read_adult(folder: Path) -> tuple[list[list[Any]], list[str]]:
    """Rows with the columns of `ADULT`, as texts, and the labels.

    Args:
        folder: Where adult.data lies.
    """
    with (folder / "adult.data").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    return [row[:-1] for row in rows], [row[-1].rstrip(".") for row in rows]
