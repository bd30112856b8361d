"""The entries of the registry: each has all that other files list about a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from privmax.privacy import Neighbors

if TYPE_CHECKING:
    from privmax.mechanisms.contract import Mechanism


class LastDraw(NamedTuple):
    """The draw that decides how far below the best an item can be, whatever the data.

    The page `proofs/utility`, "Without a margin", proves the bound that follows from it.

    Attributes:
        candidates: Among how many candidates it is at most, the best one included.
        epsilon: Its epsilon.
        neighbors: The relation whose constant scales its noise.
        noise: "exponential": weights exp(ε·score/c), or a draw that is never worse; "laplace":
            Laplace noise on every score; "none": only the best is ever released.

    Examples:
        >>> LastDraw(100, Fraction(1), "replace").noise
        'exponential'
    """

    candidates: int
    epsilon: Fraction
    neighbors: Neighbors
    noise: Literal["exponential", "laplace", "none"] = "exponential"


@dataclass(frozen=True, kw_only=True)
class MechanismEntry:
    """A mechanism, with all that plans, audits, help, pages and tests list about it.

    Its class is loaded only when it is asked for, as help must not load NumPy. What the class
    knows (its parameters, its privacy cost, the lead that it needs) is not repeated here.

    Attributes:
        name: The name of its class.
        home: The module of the class, in `privmax.mechanisms`.
        title: What pages and the navigation of the site call it.
        serves: What it is good for, in one line.
        does: What it does, in the words that follow "mechanism" in what commands print.
        needs: What must be known in advance, beside the privacy cost.
        needs_many: The same where `k` items are released; "": no different.
        needs_order: The same where their order is released, too; "": no different.
        abstains: Whether it may release nothing although the universe is closed.
        requires: Parameters that must be given beside epsilon and delta, each with a small value.
        example: The other parameters of an example that has an answer now and then on small data;
            a value that takes a module to make is a function.
        companions: Public names that go with the class, as "module.name" in `privmax.mechanisms`.
        last_draw: Of a mechanism and the size of a universe (None: open), the draw that bounds how
            far one item can be below the best; None: there is no such bound.
        for_lists: Whether it is for more than one item: plans for one leave it out unless named.
        slow: When its leads take seconds or more to compute.
        claim: What its proof page proves, in the list of proofs.
        statement: The weights or the noise that the theorem is about, word for word as the
            statement on its proof page has them; no other mechanism's statement does.

    Examples:
        >>> from privmax.mechanisms.registry import MECHANISMS
        >>> MECHANISMS["nested-margin"].load().__name__
        'NestedMargin'
        >>> MECHANISMS["exponential"].pure, MECHANISMS["nested-margin"].pure
        (True, False)
        >>> list(MECHANISMS["max-of-laplaces"].parameters)
        ['epsilon', 'neighbors']
    """

    name: str
    home: str
    title: str
    serves: str
    does: str
    needs: str
    needs_many: str = ""
    needs_order: str = ""
    abstains: bool
    requires: Mapping[str, int] = field(default_factory=dict)
    example: Mapping[str, Any]
    companions: tuple[str, ...] = ()
    last_draw: Callable[[Any, int | None], LastDraw] | None = None
    for_lists: bool = False
    slow: Literal["never", "at a small epsilon", "in lists"] = "never"
    claim: str
    statement: str

    @property
    def proof(self) -> str:
        """The page that proves its privacy cost, as `privmax help` and the site name it.

        Examples:
            >>> from privmax.mechanisms.registry import MECHANISMS
            >>> MECHANISMS["gap-test"].proof
            'proofs/gap-test'
        """
        return f"proofs/{self.home.replace('_', '-')}"

    @property
    def public(self) -> Mapping[str, str]:
        """The module of each public name, its class first.

        Examples:
            >>> from privmax.mechanisms.registry import MECHANISMS
            >>> MECHANISMS["set-margin"].public
            {'SetMargin': 'privmax.mechanisms.set_margin', 'Stage': 'privmax.mechanisms.stages'}
        """
        paths = [f"{self.home}.{self.name}", *self.companions]
        parts = [path.split(".") for path in paths]
        return {name: f"privmax.mechanisms.{module}" for module, name in parts}

    def load(self) -> Callable[..., Mechanism]:
        """Return its class."""
        mechanism: Callable[..., Mechanism] = getattr(
            import_module(f"privmax.mechanisms.{self.home}"), self.name
        )
        return mechanism

    def make_example(self, **changes: Any) -> Mechanism:
        """Make the mechanism of the example, with other values for some parameters.

        Examples:
            >>> from privmax.mechanisms.registry import MECHANISMS
            >>> MECHANISMS["limited-domain"].make_example(epsilon=2)
            LimitedDomain(epsilon=2, delta=0.05, rank=2, neighbors='add-remove', growth=None, k=1)
        """
        return self.load()(**{**self.example_options(), **changes})

    def example_options(self) -> dict[str, Any]:
        """Return the parameters of the example.

        Examples:
            >>> from privmax.mechanisms.registry import MECHANISMS
            >>> MECHANISMS["choosing"].example_options()
            {'growth': 1, 'epsilon': 1, 'delta': '0.05'}
        """
        values = {**self.requires, **self.example}
        return {name: value() if callable(value) else value for name, value in values.items()}

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters it can be made with; plans ask a hundred times."""
        return signature(self.load()).parameters

    @property
    def pure(self) -> bool:
        """Whether a single draw needs no delta, and without one a closed universe."""
        return "delta" not in self.parameters or self.parameters["delta"].default == 0

    @property
    def needs_closed(self) -> bool:
        """Whether it needs a closed universe whatever delta is: others use delta to abstain."""
        return self.pure and not self.abstains
