"""Parts of a budget that are ledgers of their own."""

from __future__ import annotations

import contextlib
import pickle

import pytest

from privmax import select
from privmax.errors import BudgetError, LedgerError, ParameterError
from privmax.ledger import Charge, Ledger, Reservation
from privmax.ledger.parts import _describe
from privmax.privacy import Privacy

TENTH = Charge(Privacy("1/10"), unit="user")


@pytest.fixture
def whole(tmp_path):
    with Ledger.create(tmp_path / "budget.db", "year", budget=Privacy(3, "1e-5")) as made:
        yield made


def test_a_part_is_charged_once_to_the_whole_and_spends_by_itself(whole):
    with whole.split("sales", Privacy(1, "1e-6"), unit="user") as part:
        assert (whole.spent, part.budget, part.spent) == (
            Privacy(1, "1e-6"),
            Privacy(1, "1e-6"),
            Privacy(0),
        )
        for _ in range(10):
            part.charge(TENTH, {}).record("x")
        with pytest.raises(BudgetError, match="ledger 'sales'"):
            part.charge(TENTH, {})
        assert (whole.spent, part.spent) == (Privacy(1, "1e-6"), Privacy(1))
        assert (whole.verify(), part.verify()) == ([], [])
        assert (part.part.whole, part.part.unit, part.rule) == ("year", "user", "basic")
    assert whole.part is None


def test_to_split_again_opens_the_part_and_charges_nothing(whole):
    whole.split("sales", Privacy(1), unit="user").close()
    with whole.split("sales", Privacy(1)) as part:  # the charge has fixed the unit
        part.charge(TENTH, {})
    assert whole.spent == Privacy(1)
    for budget, more in ((Privacy(2), {}), (Privacy(1), {"unit": "basket"})):
        with pytest.raises(LedgerError, match=r"is not this part of 'year'\. Nothing was charged"):
            whole.split("sales", budget, **more)
    assert whole.spent == Privacy(1)


def test_a_crash_between_charge_and_part_is_made_good_by_trying_again(whole, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_make", crash)
        with pytest.raises(KeyboardInterrupt):
            whole.split("sales", Privacy(1), unit="user")
    assert whole.spent == Privacy(1)
    with whole.split("sales", Privacy(1), unit="user") as part:
        assert part.budget == Privacy(1)
    assert whole.spent == Privacy(1)


def test_what_does_not_fit_makes_no_part(whole, tmp_path):
    with pytest.raises(BudgetError, match="ledger 'year'"):
        whole.split("sales", Privacy(4), unit="user")
    with pytest.raises(LedgerError, match="has no ledger 'sales'"):
        Ledger(tmp_path / "budget.db", "sales")


def test_a_refused_split_leaves_no_file_behind(whole, tmp_path):
    new = tmp_path / "new.db"
    with pytest.raises(BudgetError):
        whole.split("sales", Privacy(4), unit="user", where=new)
    whole.charge(TENTH, {})
    with pytest.raises(LedgerError, match="neighbors"):
        whole.split("sales", Privacy(1), neighbors="replace", where=new)
    whole.split("sales", Privacy(1), where=tmp_path / "a.db").close()
    with pytest.raises(LedgerError, match="with a different question"):
        whole.split("sales", Privacy(1), where=new)
    (tmp_path / "a.db").rename(tmp_path / "moved.db")
    with pytest.raises(LedgerError, match="was created and is gone"):
        whole.split("sales", Privacy(1), where=tmp_path / "a.db")
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["budget.db", "moved.db"]


def test_a_place_where_no_part_can_be_made_is_not_charged_for(whole, tmp_path):
    with pytest.raises(LedgerError, match="none"):
        whole.split("sales", Privacy(1), unit="user", where=tmp_path / "none" / "a.db")
    assert whole.spent == Privacy(0)


def test_a_part_cannot_be_raised_and_is_held_to_relation_and_unit(whole, tmp_path):
    with whole.split("sales", Privacy(1), unit="user") as part:
        with pytest.raises(LedgerError, match=r"cannot be raised\. Split off another part"):
            part.grant(Privacy(1), why="more")
        for price, told in (
            (Charge(Privacy("1/10"), unit="basket"), "the unit 'user'; this one has 'basket'"),
            (Charge(Privacy("1/10"), neighbors="replace"), "the neighbors 'add-remove'; this one"),
        ):
            for act in (
                lambda price=price: part.charge(price, {}),
                lambda price=price: part.require(price),
            ):
                with pytest.raises(LedgerError, match=told):
                    act()
        assert part.spent == Privacy(0)
        part.open_account("ann", Privacy("1/2"))
        part.grant(Privacy("1/4"), why="within the part", account="ann")
    again = Ledger(tmp_path / "budget.db", "sales")
    with again, pytest.raises(LedgerError, match="cannot be raised"):
        again.grant(Privacy(1), why="more")


def test_what_a_part_does_not_take_does_not_fit(whole):
    part = whole.split("sales", Privacy(1), neighbors="replace", unit="user")
    assert part.fits(Charge(Privacy(1), neighbors="replace", unit="user"))
    assert not part.fits(Charge(Privacy(1), neighbors="replace"))
    assert not part.fits(Charge(Privacy(1), unit="user"))
    assert not part.fits(Charge(Privacy(1), neighbors="replace", unit="row"))


def test_a_part_of_a_part_is_held_to_the_same_before_any_charge(whole):
    part = whole.split("sales", Privacy(1), neighbors="replace", unit="user")
    inner = part.split("boots", Privacy("1/2"))
    assert (inner.part.neighbors, inner.part.unit) == ("replace", "user")
    assert (part.spent, whole.spent) == (Privacy("1/2"), Privacy(1))


def test_a_unit_must_be_known(whole):
    with pytest.raises(ParameterError, match="unit"):
        whole.split("sales", Privacy(1))
    assert whole.spent == Privacy(0)


def test_only_sums_can_be_split(tmp_path):
    whole = Ledger.create(tmp_path / "b.db", "z", budget=Privacy(3, "1e-5"), rule="zcdp")
    with whole, pytest.raises(LedgerError, match="only one with the rule 'basic' can be split"):
        whole.split("sales", Privacy(1), unit="user")


def test_a_name_that_is_taken_is_refused_before_anything_is_charged(whole, tmp_path):
    Ledger.create(tmp_path / "budget.db", "sales", budget=Privacy(1)).close()
    for name in ("sales", "year"):
        with pytest.raises(LedgerError, match=r"Nothing was charged\. Choose another name"):
            whole.split(name, Privacy(1), unit="user")
    assert whole.spent == Privacy(0)


def test_a_part_may_lie_elsewhere_and_is_strict_like_the_whole(tmp_path):
    whole = Ledger.create(tmp_path / "a.db", budget=Privacy(3, "1e-5"), strict=True)
    with whole, whole.split("x", Privacy(1, "1e-6"), where=tmp_path / "b.db", unit="row") as part:
        assert part.strict
        assert part.where.endswith("b.db")
        released = select(
            {"a": 900, "b": 1}, epsilon=1, delta=1e-6, ledger=part.request(unit="row")
        )
        assert released.item == "a"
        assert whole.spent == Privacy(1, "1e-6")


def test_who_splits_off_the_same_part_at_the_same_time_shares_it(whole, monkeypatch):
    make = Ledger._make

    def slower(_, *given):
        make(*given).close()
        return make(*given)

    monkeypatch.setattr(Ledger, "_make", slower)
    with whole.split("sales", Privacy(1), unit="user") as part:
        assert part._store._open is not None
        part.charge(TENTH, {})
    assert whole.spent == Privacy(1)


def test_why_a_part_cannot_be_made_is_told(whole, monkeypatch):
    def refuse(*_):
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Ledger, "_make", refuse)
    with pytest.raises(LedgerError, match="The disk is full"):
        whole.split("sales", Privacy(1), unit="user")
    assert whole.spent == Privacy(1)


def test_one_charge_makes_one_part_wherever_it_lies(whole, tmp_path):
    whole.split("sales", Privacy(1), unit="user", where=tmp_path / "a.db").close()
    for where in (tmp_path / "b.db", None):
        with pytest.raises(LedgerError, match="with a different question"):
            whole.split("sales", Privacy(1), where=where)
    assert whole.spent == Privacy(1)


def test_a_part_that_is_gone_is_not_made_again(whole, tmp_path):
    """It would have forgotten what it spent."""
    with whole.split("sales", Privacy(1), unit="user", where=tmp_path / "a.db") as part:
        part.charge(TENTH, {})
    (tmp_path / "a.db").unlink()
    with pytest.raises(LedgerError, match="was created and is gone"):
        whole.split("sales", Privacy(1), where=tmp_path / "a.db")
    assert whole.spent == Privacy(1)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db.example.com/budget",
        "postgresql://db.example.com/budget?user=ada&password=hunter2",
        "postgresql://ada@db.example.com/budget?sslpassword=hunter2",
    ],
)
def test_the_place_of_a_part_is_recorded_without_a_password(url):
    assert _describe(url) == "postgresql://db.example.com/budget"


def test_nor_is_a_part_of_one_recorded_and_other_settings_are_another_place():
    assert "hunter2" not in _describe("postgresql://ada:x/hunter2@db.example.com/budget")
    places = {_describe(f"postgresql://h/db?options=-csearch_path%3D{name}") for name in "ab"}
    assert len(places) == 2


def test_a_ledger_that_was_opened_is_split_where_it_is(whole, tmp_path):
    with (
        Ledger(tmp_path / "budget.db", "year") as again,
        again.split("sales", Privacy(1), unit="user") as part,
    ):
        assert part.where == whole.where
    assert whole.spent == Privacy(1)


def test_a_name_that_is_too_long_for_a_part_is_told_as_such(whole):
    with pytest.raises(ParameterError, match="name="):
        whole.split("x" * 195, Privacy(1), unit="user")
    assert whole.spent == Privacy(0)


def test_a_batch_refuses_at_once_what_a_part_does_not_take(whole):
    with whole.split("sales", Privacy(1), unit="user") as part:
        with part.batch() as batch:
            with pytest.raises(LedgerError, match="the unit 'user'; this one has 'basket'"):
                batch.charge(Charge(Privacy("1/10"), unit="basket"), {})
            batch.charge(TENTH, {})
        assert part.spent == Privacy("1/10")


# Another working directory


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A ledger that was opened by a relative path, and a folder to change to."""
    for name in ("home", "away"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "home")
    with Ledger.create("b.db", budget=Privacy(3)) as whole:
        yield whole, tmp_path


def test_a_part_is_where_its_whole_is_after_a_change_of_directory(elsewhere, monkeypatch):
    whole, folder = elsewhere
    monkeypatch.chdir(folder / "away")
    with whole.split("p", Privacy(1), unit="user") as part:
        part.charge(Charge(Privacy(1), unit="user"), {})
    assert list((folder / "away").iterdir()) == []
    assert Ledger.names(folder / "home" / "b.db") == ["default", "p"]
    monkeypatch.chdir(folder / "home")
    with whole.split("p", Privacy(1), unit="user") as part:
        assert part.spent == Privacy(1)


@pytest.mark.parametrize("where", [None, "parts.db"])
def test_a_split_that_crashed_makes_no_second_part_elsewhere(elsewhere, monkeypatch, where):
    whole, folder = elsewhere

    def crash(reservation, answer):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Reservation, "record", crash)
        with pytest.raises(KeyboardInterrupt):
            whole.split("p", Privacy(1), where=where, unit="user")
    monkeypatch.chdir(folder / "away")
    with contextlib.suppress(LedgerError):
        whole.split("p", Privacy(1), where=where, unit="user").close()
    made = [path for path in folder.rglob("*.db") if "p" in Ledger.names(path)]
    assert len(made) == 1
    assert whole.spent == Privacy(1)


def test_a_link_that_points_elsewhere_makes_no_second_part(elsewhere, monkeypatch):
    whole, folder = elsewhere
    link = folder / "parts"
    link.symlink_to(folder / "home")
    with monkeypatch.context() as patch:
        patch.setattr(Reservation, "record", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            whole.split("p", Privacy(1), where=link / "p.db", unit="user")
    link.unlink()
    link.symlink_to(folder / "away")
    with pytest.raises(LedgerError, match="different question"):
        whole.split("p", Privacy(1), where=link / "p.db", unit="user")
    assert not (folder / "away" / "p.db").exists()


def test_a_pickled_ledger_is_found_from_another_directory(elsewhere, monkeypatch):
    whole, folder = elsewhere
    monkeypatch.chdir(folder / "away")
    with pickle.loads(pickle.dumps(whole)) as again:
        assert again.spent == Privacy(0)
