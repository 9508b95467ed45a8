"""Which tables of R packages are taken for their labels, and how (`packaged` measures them).

All packages. The label is the first column of two values; where there is none, the first of 3 to 8 values; each value
of at least 12 records. Tables with 200 to 8,000 whole rows and 2 to 100 columns are taken if an exact fit explains 3
to 99.9 % of the entropy of the labels; of tables with the same rows and columns the first. They are in the order of a
hash of their names; a second hash says which half rules are chosen on
(LOOKED) and which they are checked on (HELD). Tables of both may have been looked at for rules of before there were
halves (docs/solvers-measured.md).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.utility.development_sets import Development, bound_rows, scale_to_range
from benchmarks.utility.packaged_frames import digest, indicate, is_category, is_name, list_names, read_frame

LOOKED = (
    *("plm/RiceFarms", "wooldridge/cps78_85", "KMsurv/channing", "modeldata/hpc_cv", "AER/TeachingRatings"),
    *("wooldridge/card", "openintro/london_murders", "pscl/bioChemists", "Stat2Data/SuicideChina"),
    *("openintro/climber_drugs", "lme4/Arabidopsis", "boot/melanoma", "wooldridge/k401k", "Ecdat/Fatality"),
    *("wooldridge/gpa2", "fpp2/elecdaily", "MASS/epil", "modeldata/wa_churn", "dslabs/historic_co2"),
    *("plm/Crime", "mediation/boundsdata", "Ecdat/Mode", "carData/KosteckiDillon", "carData/Wells"),
    *("MASS/Sitka89", "openintro/assortative_mating", "DAAG/stVincent", "heplots/Iwasaki_Big_Five"),
    *("MASS/biopsy", "DAAG/psid1", "Stat2Data/Marathon", "Ecdat/Treatment", "palmerpenguins/penguins_raw"),
    *("AER/PSID1976", "HistData/GaltonFamilies", "Ecdat/FriendFoe", "carData/OBrienKaiserLong", "openintro/fastfood"),
    *("Ecdat/ModeChoice", "openintro/ppp_201503"),
)
HELD = (
    *("carData/Arrests", "causaldata/Mroz", "betareg/ImpreciseTask", "ISLR/Weekly", "wooldridge/fertil1"),
    *("Ecdat/Ketchup", "Ecdat/PatentsHGH", "ISLR/Auto", "AER/SwissLabor", "DAAG/nsw74psid3", "heplots/NeuroCog"),
    *("wooldridge/prison", "MASS/crabs", "Stat2Data/Blood1", "reshape2/tips", "openintro/bdims", "mlmRev/Socatt"),
    *("geepack/ohio", "vcd/Suicide", "modeldata/Chicago", "stevedata/CFT15", "stevedata/states_war"),
    *("Ecdat/Yogurt", "Stat2Data/WalkTheDogs", "HSAUR/respiratory", "ISLR/Smarket", "dslabs/mice_weights"),
    *(
        "mlmRev/egsingle",
        "nlme/Soybean",
        "pscl/vote92",
        "Ecdat/Catsup",
        "pscl/UKHouseOfCommons",
        "openintro/gdp_countries",
    ),
    *("modeldata/Sacramento", "datasets/infert", "ISLR/OJ", "openintro/babies", "wooldridge/discrim"),
    *("DAAG/leafshape", "sem/CNES"),
)
EACH, MOST_RECORDS, MOST_CLASSES, FEWEST_OF_CLASS = 40, 8000, 8, 12


def read_table(name: str) -> tuple[Any, Any] | None:
    """Rows, and classes with the most frequent first; None where there are none that the rule takes."""
    frame = read_frame(name)
    if frame is None or not 200 <= len(frame) <= MOST_RECORDS:
        return None
    label = min((place for place in map(partial(_rank, frame), range(frame.shape[1])) if place), default=None)
    if label is None:
        return None
    columns: list[Any] = []
    for place in range(frame.shape[1]):
        cells = frame.iloc[:, place]
        if place == label[1]:
            continue
        if is_category(cells):
            columns += indicate(cells)
        elif not is_name(cells.to_numpy(float)) and cells.nunique() > 1:
            columns.append(cells.to_numpy(float))
    if not 2 <= len(columns) <= 100:
        return None
    counts = frame.iloc[:, label[1]].astype(str).value_counts()
    places = {value: place for place, value in enumerate(counts.index)}
    return np.column_stack(columns), frame.iloc[:, label[1]].astype(str).map(places).to_numpy(np.int64)


def _rank(frame: Any, place: int) -> tuple[bool, int] | None:
    """Of a column that can be the label: those of two values come first."""
    cells = frame.iloc[:, place]
    if not is_category(cells) and not np.all(cells == np.round(cells)):
        return None
    counts = cells.astype(str).value_counts()
    if not 2 <= len(counts) <= MOST_CLASSES or counts.min() < FEWEST_OF_CLASS:
        return None
    return len(counts) > 2, place


def draw(half: str) -> list[str]:
    """The names that the rule takes, in their order."""
    found: list[str] = []
    seen = set()
    for name in list_names():
        if ("held" if int(digest(f"half {name}"), 16) % 2 else "looked") != half:
            continue
        table = read_table(name)
        if table is None or table[0].shape in seen or not 0.03 <= _explain(*table) <= 0.999:
            continue
        seen.add(table[0].shape)
        found.append(name)
        if len(found) == EACH:
            break
    return found


def _explain(X: Any, y: Any) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    shares, rows = np.bincount(y) / len(y), 2 * scale_to_range(X) - 1
    model = LogisticRegression(C=1e3, max_iter=500).fit(rows, y)
    return float(1 + log_loss(y, model.predict_proba(rows)) / (shares @ np.log(shares)))


def make(name: str) -> Development:
    """A table as a development set."""
    table = read_table(name)
    assert table is not None, name
    X, y = table
    order, classes = np.random.default_rng(0).permutation(len(y)), int(y.max()) + 1
    kind = "binary" if classes == 2 else "classes"
    return bound_rows(2 * scale_to_range(X[order]) - 1, y[order], kind=kind, classes=classes)


SETS = {f"{name} label": partial(make, name) for name in (*LOOKED, *HELD)}
