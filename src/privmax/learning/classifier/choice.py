"""The choice of a model, by a public table of rows × epsilon, tests and columns.

The table was made on invented data by lab/benchmarks/quality/classifier.py and then fixed. It sees
public facts and a count that was released, so it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privmax.learning.additive.fitting import MOST_PAIRS
from privmax.learning.additive.rounds import AdditiveRounds
from privmax.learning.classes.stumps import stump_count
from privmax.learning.schema import Schema
from privmax.learning.splits import splits_of

CONSTANT, TEST, TREE = "one label for all", "one test", "tree of depth 2"
ADDITIVE, PAIRS = "additive model", "additive model with pairs"

RULES = (CONSTANT, TEST, TREE)
MEMBERS = (*RULES, ADDITIVE, PAIRS)
"""All models that may be fitted, the simplest first."""

INTERACTIONS = 5
"""Rounds on pairs of columns, in the additive model that has them."""

ROUNDS = AdditiveRounds.rounds
"""Rounds on single columns."""

MOST_TESTS = 1 << 11
"""With more tests, or more than MOST_PAIRS pairs of columns, trees are too many to count."""

MOST_WORK = 1 << 32
"""Entries of tables of two columns, over all rows, beyond which counting them takes minutes."""

PER_BIT = {TEST: 1, TREE: 2}
"""Rows × epsilon for each binary digit of the number of rules of a class. With fewer, the draw is
hardly better than a guess, or than one of a smaller class.

The noise of a count is 25 rows × epsilon, more than this for a test. So a test is fitted wherever
rows are counted: with too few it is as good as one label for all, with enough it is far better.
"""

ADDED = {True: (3_000, 6_000), False: (1_000, 2_500)}
"""Rows × epsilon from which additive models are better than one test, and than a tree: without a
delta, and with one.
"""


@dataclass(frozen=True)
class Facts:
    """The public facts about columns.

    columns   how many there are
    tests     thresholds and categories that a column is compared with, in all
    """

    columns: int
    tests: int

    @classmethod
    def of(cls, schema: Schema) -> Facts:
        """Return the facts of a schema.

        Examples:
            >>> from privmax.learning import Number
            >>> Facts.of(Schema(age=Number(0, 9, cells=3), dose=Number(0, 9, cells=2)))
            Facts(columns=2, tests=3)
        """
        return cls(schema.features, sum(map(len, splits_of(schema))))

    def members(self) -> tuple[str, ...]:
        """Return which models can be fitted to such columns.

        Examples:
            >>> Facts(columns=1, tests=5_000).members()
            ('one label for all', 'one test', 'additive model')
            >>> TREE in Facts(columns=101, tests=101).members()
            False
        """
        doubles = math.comb(self.columns, 2)
        has = {
            TREE: self.tests <= MOST_TESTS and doubles <= MOST_PAIRS,
            PAIRS: self.columns > 1,
        }
        return tuple(member for member in MEMBERS if has.get(member, True))

    def quick(self, rows: int) -> tuple[str, ...]:
        """Return which of these take no longer than minutes for so many rows.

        Examples:
            >>> Facts(columns=50, tests=1_550).quick(10**7)[-1]
            'additive model'
        """
        doubles = math.comb(self.columns, 2)
        pairs = doubles if doubles <= MOST_PAIRS else math.comb(ROUNDS, 2)
        work = {TREE: 2 * doubles * rows, PAIRS: INTERACTIONS * pairs * rows}
        return tuple(one for one in self.members() if work.get(one, 0) <= MOST_WORK)


def decide(facts: Facts, rows: int, epsilon: Fraction, *, pure: bool, counted: bool = True) -> str:
    """Return the model for so many rows and such an epsilon.

    Args:
        facts: Of the columns.
        rows: How many there are: a public number, or a noisy count.
        epsilon: What the fit costs.
        pure: Whether delta is 0.
        counted: Whether the number of rows is a noisy count.

    Examples:
        >>> facts = Facts(columns=14, tests=290)
        >>> [decide(facts, rows, Fraction(1), pure=False) for rows in (0, 30, 300, 30_000)]
        ['one test', 'one test', 'tree of depth 2', 'additive model with pairs']
        >>> decide(facts, 5, Fraction(1), pure=False, counted=False)
        'one label for all'
    """
    stumps = stump_count(facts.tests, 2)
    over_test, over_tree = ADDED[pure]
    members = facts.quick(rows)
    least = {
        TEST: 0 if counted else PER_BIT[TEST] * stumps.bit_length(),
        TREE: PER_BIT[TREE] * (facts.tests * stumps**2).bit_length(),
        ADDITIVE: over_tree if TREE in members else over_test,
    }
    least[PAIRS] = least[ADDITIVE]
    return [one for one in members if rows * epsilon >= least.get(one, 0)][-1]


def explain(facts: Facts, rows: int, epsilon: Fraction) -> str:
    """Return the facts that decided, in words.

    Examples:
        >>> explain(Facts(columns=14, tests=290), 1_000, Fraction(1, 10))
        '1,000 rows × epsilon 0.1 is 100, for 14 columns with 290 tests'
    """
    columns = f"{facts.columns} column{'s' * (facts.columns != 1)}"
    tests = f"{facts.tests} test{'s' * (facts.tests != 1)}"
    product = f"{float(rows * epsilon):,.6g}"
    return f"{rows:,} rows × epsilon {float(epsilon):g} is {product}, for {columns} with {tests}"
