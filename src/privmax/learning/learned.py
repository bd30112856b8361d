"""A released model with the public facts that it is read by: what a model card is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from privmax.errors import ParameterError

if TYPE_CHECKING:
    from privmax.learning.schema import Schema
    from privmax.release import Release


@dataclass(frozen=True)
class Learned:
    """A release of a model, with the public facts that it is read by.

    release   the answer
    schema    the columns
    targets   both labels, the second is what tables are about; or the bounds of a number
    name      of what is predicted
    """

    release: Release
    schema: Schema
    targets: tuple[Any, Any]
    name: str

    @classmethod
    def of(cls, learner: Any, name: str) -> Self:
        """Return what a fitted learner released.

        Args:
            learner: A `PrivateGAM`, `PrivateClassifier`, `PrivateRegressor` or `PrivateTree`.
            name: Of what it predicts.

        Raises:
            ParameterError: It is another.
        """
        from sklearn.utils.validation import check_is_fitted

        from privmax.learning.additive.estimator import PrivateGAM
        from privmax.learning.classifier.estimator import PrivateClassifier
        from privmax.learning.regressor.estimator import PrivateRegressor
        from privmax.learning.tree import PrivateTree

        learners = (PrivateGAM, PrivateClassifier, PrivateRegressor, PrivateTree)
        if not isinstance(learner, learners):
            known = ", ".join(one.__name__ for one in learners)
            raise ParameterError(
                "learner", type(learner).__name__, f"a card is about one of {known}",
                "Give `release_` of other learners to privmax.report.html.",
            )  # fmt: skip
        check_is_fitted(learner, "release_")
        of_number = isinstance(learner, PrivateRegressor)
        first, second = (learner.targets_ if of_number else learner.labels_).tolist()
        return cls(learner.release_, learner.schema_, (first, second), name)
