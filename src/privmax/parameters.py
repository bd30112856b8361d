"""Classes whose parameters are declared once: what may be given, what it becomes, and the default.

    class Sample(Parameters):
        rate: Exact = parameter(probability)
        size: Whole = parameter(whole, default=100)

`Sample(rate="1/4")` reads the rate with `probability("rate", "1/4")`, so an error names the
parameter; `Sample.rate` is then the Fraction 1/4. Such a class is a frozen dataclass: two with the
same parameters are equal, and `repr` shows them exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, dataclass_transform

from privmax.numbers import Number, plain

Given = TypeVar("Given")
Value = TypeVar("Value")
Read = TypeVar("Read")


class Parameter(Generic[Given, Value]):
    """One parameter of a class: given as a `Given`, it is a `Value` from then on.

    It is a descriptor, so that type checkers know both: the constructor takes the one, and
    the attribute is the other. At run time the object simply has a value. Make it with
    `parameter`.
    """

    def __init__(
        self, convert: Callable[..., Value], default: object, depends_on: str | None, quiet: bool
    ) -> None:
        self.convert = convert
        self.default = default
        self.depends_on = depends_on
        self.quiet = quiet

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Value:
        """Return the default: of an object with a value of its own, Python does not ask this."""
        if self.default is MISSING:  # so that a dataclass sees that there is no default
            raise AttributeError(f"{self.name} has no default")
        default: Value = self.default  # type: ignore[assignment]  # as given, not yet read
        return default

    if TYPE_CHECKING:

        def __set__(self, instance: object, value: Given) -> None: ...


Exact = Parameter[Number, Fraction]
"""A number that is kept exactly."""

Whole = Parameter[int, int]
"""A whole number."""

OptionalWhole = Parameter[int | None, int | None]
"""A whole number, or None."""


def parameter(
    convert: Callable[..., Any],
    *,
    default: object = MISSING,
    depends_on: str | None = None,
    quiet: bool = False,
    **options: object,
) -> Any:
    """Declare a parameter of a class derived from `Parameters`.

    Args:
        convert: Reads what was given, as `convert(name, value, **options)`, or raises a
            ParameterError.
        default: What is read where nothing is given; without one the parameter is required.
        depends_on: Another parameter that decides what is allowed: its value, read before, is
            passed as a third argument.
        quiet: Whether `repr` leaves it out where it is as by default: ledgers keep what `repr`
            shows, and recorded before the parameter came.
        options: Passed to `convert`.

    Examples:
        >>> from privmax.numbers import whole
        >>> class Sample(Parameters):
        ...     size: Whole = parameter(whole, default=100, least=2)
        >>> Sample(), Sample(size=3)
        (Sample(size=100), Sample(size=3))
    """
    return Parameter(partial(convert, **options), default, depends_on, quiet)


def optional(convert: Callable[..., Read]) -> Callable[..., Read | None]:
    """Let None stand for a parameter that is not given, and read any other with `convert`.

    Examples:
        >>> from privmax.numbers import whole
        >>> optional(whole)("growth", None), optional(whole)("growth", 3)
        (None, 3)
    """

    def read(name: str, value: object, **options: object) -> Read | None:
        return None if value is None else convert(name, value, **options)

    return read


class ExactRepr:
    """A dataclass whose `repr` shows its public parameters exactly and in short.

    Examples:
        >>> @dataclass(repr=False)
        ... class Share(ExactRepr):
        ...     part: Fraction
        >>> Share(Fraction(1, 4))
        Share(part=0.25)
    """

    def __repr__(self) -> str:
        parts = []
        for spec in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            if self._leaves_out(spec.name):
                continue
            parts.append(f"{spec.name}={_show(getattr(self, spec.name))}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _leaves_out(self, name: str) -> bool:
        """Whether `repr` does not show a parameter."""
        return False


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(parameter,))
class Parameters(ExactRepr):
    """Base of classes whose parameters are declared once. They are given by name.

    A class made with `kw_only=False` takes them by position, too.

    Examples:
        >>> from privmax.numbers import positive
        >>> class Scale(Parameters):
        ...     epsilon: Exact = parameter(positive)
        >>> Scale(epsilon=0.1)
        Scale(epsilon=0.1)
        >>> Scale(epsilon=0.1) == Scale(epsilon="1/10")
        True
        >>> Scale(epsilon=0)
        Traceback (most recent call last):
        ...
        privmax.errors.ParameterError: epsilon=0 is not allowed: it must be above 0. ...
    """

    parameters: ClassVar[dict[str, Parameter[Any, Any]]] = {}

    def __init_subclass__(cls, *, kw_only: bool = True) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=kw_only, repr=False)(cls)
        members = {**cls.parameters, **vars(cls)}
        declared = [spec.name for spec in fields(cls)]  # type: ignore[arg-type]  # it is one now
        cls.parameters = {name: members[name] for name in declared}

    def __post_init__(self) -> None:
        """Read what was given: first independent parameters, then those that depend on another."""
        values = vars(self)
        for name, declared in self.parameters.items():
            if declared.depends_on is None:
                values[name] = declared.convert(name, values[name])
        for name, declared in self.parameters.items():
            if declared.depends_on is not None:
                values[name] = declared.convert(name, values[name], values[declared.depends_on])

    def changed(self) -> dict[str, Any]:
        """Return the parameters that are not as by default, or have no default.

        Examples:
            >>> from privmax.numbers import whole
            >>> class Sample(Parameters):
            ...     size: Whole = parameter(whole, default=100)
            >>> Sample().changed(), Sample(size=3).changed()
            ({}, {'size': 3})
        """
        return {name: getattr(self, name) for name in self.parameters if not self._is_usual(name)}

    def _is_usual(self, name: str) -> bool:
        """Whether a parameter is what its default is read as."""
        declared = self.parameters[name]
        if declared.default is MISSING:
            return False
        extra = () if declared.depends_on is None else (getattr(self, declared.depends_on),)
        usual: object = declared.convert(name, declared.default, *extra)
        return bool(usual == getattr(self, name))

    def _leaves_out(self, name: str) -> bool:
        return self.parameters[name].quiet and self._is_usual(name)


def _show(value: object) -> str:
    if isinstance(value, Fraction):
        return plain(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
