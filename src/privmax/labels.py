"""One spelling for each label, and which values are not labels.

A counter takes what is equal for one item, and then one of its spellings is there to be
released: that of one person. So a label is put into a form that follows from its value alone,
anyone who wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from privmax.deferred import is_numpy, np
from privmax.errors import DataError

_DAY, _HOUR, _SECOND, _LEAST = (
    timedelta(**{unit: 1}) for unit in ("days", "hours", "seconds", "microseconds")
)
_NONE, _FARTHEST = timedelta(0), _DAY - _SECOND
"""The least and the largest offset of a time zone from UTC."""

_LONGEST = 1000
"""Decimals are written out up to this power of ten, and whole numbers beyond it are Decimals."""

SHORT = 1 << 3325
"""Whole numbers below this, which is less than 10^(_LONGEST + 1), are integers for certain."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

_KNOWN = {str, int, float, bytes, Decimal, Fraction, UUID, date, datetime, time, timedelta}
"""Types whose values have one form each, once they are plain."""

UNKNOWN = (
    "A label has a type without exact equality, or is not valid text. Use text, numbers, dates, or "
    "tuples of them."
)


def plain_label(label: Any) -> Any:
    """Return a label as an ordinary Python object in its canonical form.

    The form does not depend on the library or the spelling that it comes from.

    −0.0 is 0.0; a Decimal has no zeros at its end and no exponent; a time of a known zone is in
    UTC; text, numbers and tuples are of Python's own types. Labels that are equal and of one type
    are identical then; it never fails.
    """
    kind = type(label)
    if kind is str or kind is int or kind is bool:
        return label
    if hasattr(label, "as_py"):
        label = label.as_py()
    elif is_numpy(label):
        label = _of_numpy(label)
    if isinstance(label, str):
        return str.__str__(label)
    if isinstance(label, bool) or label is None:
        return label
    if isinstance(label, int):
        return int(label)
    if isinstance(label, float):
        return float(label) + 0.0
    if isinstance(label, Decimal):
        return _plain_decimal(label)
    if isinstance(label, Fraction):
        return Fraction(label.numerator, label.denominator)
    if isinstance(label, tuple):
        return tuple(map(plain_label, label))
    if isinstance(label, frozenset):
        return frozenset(map(plain_label, label))
    if isinstance(label, bytes):
        return bytes(label)
    if is_missing(label):
        return label
    with suppress(Exception):  # a subclass may do as it likes
        if isinstance(label, datetime):
            return _plain_datetime(label)
        if isinstance(label, date):
            return date(label.year, label.month, label.day)
        if isinstance(label, time):
            return _plain_time(label)
        if isinstance(label, timedelta):
            return _plain_span(label)
        if isinstance(label, UUID):
            return UUID(int=label.int)
    return label


def label_by_value(label: Any) -> Any:
    """Return the label that a value has where types may be mixed.

    To Python 1, 1.0, True and Decimal("1.0") are equal, so they become one label.

    Whole numbers are integers (from 10^1001 on Decimals, which do not fill the memory); of the
    others those that a float can hold are floats, those of finitely many digits Decimals, and the
    rest Fractions.
    """
    label = plain_label(label)
    if isinstance(label, str | bytes):
        return label
    if isinstance(label, int):
        return int(label) if -SHORT < label < SHORT else _by_digits(_plain_decimal(Decimal(label)))
    if isinstance(label, tuple):
        return tuple(map(label_by_value, label))
    if isinstance(
        label, frozenset
    ):  # in one order, too: Python lists equal sets as they were filled
        return frozenset(
            sorted(map(label_by_value, label), key=lambda part: (type(part).__name__, repr(part)))
        )
    if isinstance(label, complex) or is_numpy(label, "complexfloating"):
        return label_by_value(label.real) if label.imag == 0 else label
    if not isinstance(label, float | Decimal | Fraction) or is_missing(label):
        return label
    if isinstance(label, Fraction):
        if label.denominator == 1:
            return label_by_value(label.numerator)
        short = _decimal_of(label)
        return _as_float(label) if short is None else _by_digits(short)
    return _by_digits(label) if isinstance(label, Decimal) else _as_whole(label)


def is_known(label: Any, *, sets: bool = False) -> bool:
    """Return whether a label by value is of a type whose values have one form each.

    Tuples are, if their parts are.

    Args:
        sets: Whether frozensets are, too.
    """
    kind = type(label)
    if kind is tuple or (sets and kind is frozenset):
        return all(is_known(part, sets=sets) for part in label)
    if kind in _KNOWN or (is_numpy(label) and kind in (np.datetime64, np.timedelta64)):
        return True
    return isinstance(label, datetime | timedelta) and kind.__module__.split(".")[0] == "pandas"


def identify(label: Any) -> tuple[type, Any]:
    """Return what tells a known label from others.

    A date of pandas that counts nanoseconds may equal one of NumPy.
    """
    return type(label), tuple(map(identify, label)) if isinstance(label, tuple) else label


_LONG = 10_000
"""Places before or after the point from which on Decimals are not sorted by value."""


def by_name(label: Any) -> tuple[Any, ...]:
    """Return a key that sorts labels of all kinds.

    Numbers come first, by value, then what is written, then tuples.

    Examples:
        >>> sorted(["tea", 10, "ale", 9, ("tea", 1), ("tea",)], key=by_name)
        [9, 10, 'ale', 'tea', ('tea',), ('tea', 1)]
    """
    if isinstance(label, tuple | frozenset):
        parts = map(by_name, label)
        ordered = parts if isinstance(label, tuple) else sorted(parts)
        return (2, tuple(ordered), type(label).__name__)
    # one of a huge exponent would fill the memory as a fraction: it is sorted as it is written
    if isinstance(label, Decimal) and label.is_finite() and abs(label.adjusted()) < _LONG:
        return (0, Fraction(label), Decimal.__name__)  # fractions are compared with no decimals
    if isinstance(label, (int, float, Fraction)):
        return (0, label, type(label).__name__)
    return (1, str(label), type(label).__name__)


def key_by_name(labels: Iterable[Any]) -> Callable[[Any], Any]:
    """Return a key that sorts these labels as `by_name` does, at once where they are of one kind.

    Examples:
        >>> sorted([10, 9], key=key_by_name([10, 9])), key_by_name([10, "ale"]) is by_name
        ([9, 10], True)
    """
    return _itself if set(map(type, labels)) in ({str}, {int}) else by_name


def _itself(label: Any) -> Any:
    return label


def read_label(label: Any) -> Any:
    """Return a label by value out of data, which may hold anything; None if it is missing.

    `is_unknown` says what is not a label.

    An object of one person's own class may raise what it likes, wherever it is asked: none of that
    comes through.
    """
    with suppress(Exception):
        plain = label_by_value(label)
        if is_missing(plain):
            return None
        if is_known(plain, sets=True):
            return plain
    return _Unknown


def is_unknown(label: Any) -> bool:
    """Return whether `read_label` said that this is no label."""
    return label is _Unknown


def item_label(label: Any) -> Any:
    """Return an item in the one form that follows from its value; None if it is missing.

    The form does not depend on the library that it comes from.

    Items are the same if Python calls them equal, whatever their types: how frames type a column
    depends on everyone in it, and a whole number becomes a float because another person's is
    missing. So 1.0 is 1.

    Raises:
        DataError: It cannot be told from others for certain.

    Examples:
        >>> item_label(1.0), item_label("1"), item_label(float("nan"))
        (1, '1', None)
    """
    label = label_by_value(label)
    if is_missing(label):
        return None
    if not is_known(label):
        raise DataError(
            "An item is a list, or of another type without exact equality. Use text, numbers, "
            "dates, or tuples of them."
        )
    return label


class _Unknown:
    """Stands for what is no label."""


def is_missing(label: Any) -> bool:
    """Return whether it stands for no label: None, NaN, or what libraries write for it.

    So does a tuple or a frozenset with such a part.
    """
    if isinstance(label, tuple | frozenset):
        return any(map(is_missing, label))
    if label is None or type(label).__name__ == "NAType":
        return True
    if isinstance(label, Decimal):
        return label.is_nan()
    try:
        return bool(label != label)
    except Exception:  # a type of its own kind, which does not tell
        return False


def _of_numpy(label: np.generic) -> Any:
    """Return a NumPy scalar as what Python has for it.

    Times that count nanoseconds are kept if they need them.
    """
    if (
        isinstance(label, np.datetime64 | np.timedelta64)
        and isinstance(label.item(), int)
        and not np.isnat(label)
    ):
        try:
            short = label.astype(f"{label.dtype.kind}8[us]")
            same = short.astype(label.dtype) == label  # in its own unit, which does not overflow
            return short.item() if same and not isinstance(short.item(), int) else label
        except (
            OverflowError
        ):  # beyond all microseconds; NumPy before 2.5 went on with another number
            return label
    plain = label.item()
    if isinstance(plain, np.longdouble):
        short = float(plain)
        return (
            short
            if short == plain or not np.isfinite(plain)
            else Fraction(*plain.as_integer_ratio())
        )
    return label if type(plain) is type(label) else plain


def _as_whole(number: float) -> Any:
    return int(number) if number.is_integer() else number


def _as_float(number: Fraction | Decimal) -> Any:
    """Return a number as a float, if one holds it exactly."""
    try:
        short = float(number)
    except OverflowError:  # beyond every float
        return number
    return short if short == number else number


def _by_digits(number: Decimal) -> Any:
    """Return a plain Decimal as an integer or a float, if one holds it.

    It stays a Decimal where writing it out would fill the memory.
    """
    if not number.is_finite():
        return float(number)
    if abs(number.adjusted()) > _LONGEST:
        return number
    return int(number) if number == number.to_integral_value() else _as_float(number)


def _decimal_of(number: Fraction) -> Decimal | None:
    """Return a fraction as a plain Decimal, exactly; None: it has infinitely many digits."""
    rest, places = number.denominator, 0
    for factor in (2, 5):
        power = 0
        while rest % factor == 0:
            rest, power = rest // factor, power + 1
        places = max(places, power)
    if rest > 1:
        return None
    whole = number.numerator * 10**places // number.denominator
    return _plain_decimal(_EXACT.scaleb(Decimal(whole), -places))


def _plain_decimal(number: Decimal) -> Decimal:
    """Without zeros at its end and without an exponent; exactly, in however many digits."""
    if not number.is_finite():
        return Decimal(number)
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short:
        return Decimal(0)
    power = int(exponent) + len(text) - len(short)
    if 0 < power <= _LONGEST:
        short, power = short + "0" * power, 0
    return Decimal((sign, tuple(map(int, short)), power))


def _plain_datetime(moment: datetime) -> datetime:
    """Return a moment in UTC if its zone is known.

    It is of pandas' own class only for nanoseconds, which Python's does not hold.
    """
    if hasattr(moment, "to_pydatetime"):
        exact: Any = moment if moment.tzinfo is None else moment.astimezone(UTC)
        exact = exact.replace(fold=0)  # only now: with a zone it says which moment is meant
        plain: datetime = exact if exact.nanosecond else exact.to_pydatetime()
        return plain
    first = moment.replace(fold=0)  # of an hour that the clock repeats: to Python both are equal
    offset = first.utcoffset()
    local = datetime.combine(first.date(), first.time())
    if offset is None:
        return local
    shift = _NONE
    if local - datetime.min < offset:  # in UTC this is before the first year, or after the last
        shift = _FARTHEST
    elif datetime.max - local < -offset:
        shift = -_FARTHEST
    return (local + (shift - offset)).replace(tzinfo=timezone(shift) if shift else UTC)


def _plain_time(clock: time) -> time:
    """Return a time in UTC if its offset is known.

    Where that is on another day, which tells times apart, it is in the next whole hour.
    """
    since = timedelta(
        hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond
    )
    offset, zone = clock.utcoffset(), None
    if offset is not None:
        since -= offset // _SECOND * _SECOND  # Python does not look at less when it compares
        shift = _NONE
        if since < _NONE:
            shift = min(-(since // _HOUR) * _HOUR, _FARTHEST)
        elif since >= _DAY:
            shift = -min(((since - _DAY) // _HOUR + 1) * _HOUR, _FARTHEST)
        since, zone = since + shift, timezone(shift) if shift else UTC
    return (datetime.min + since).time().replace(tzinfo=zone)


def _plain_span(span: timedelta) -> timedelta:
    if getattr(span, "nanoseconds", 0):  # pandas' own, which Python's does not hold
        return span
    return timedelta(span.days, span.seconds, span.microseconds)
