"""No random bit is used twice: not by a thread, not by a forked child."""

from __future__ import annotations

import os
import threading

import pytest

from privmax.noise.coins import SystemCoins
from privmax.testing import OutOfCoinsError, ScriptedCoins, SeededCoins, walk


def test_bits_are_of_the_asked_size_and_vary():
    coins = SystemCoins()
    assert coins.bits(0) == 0
    assert {coins.bits(1) for _ in range(200)} == {0, 1}
    assert len({coins.bits(128) for _ in range(100)}) == 100
    assert coins.bits(100_000).bit_length() > 99_000
    assert len(coins.bytes(13)) == 13


def test_every_bit_bought_is_used_once_and_in_order(monkeypatch):
    blocks = iter([bytes(range(256)) * 2, bytes(range(255, -1, -1)) * 2])
    monkeypatch.setattr(os, "urandom", lambda n: next(blocks))
    coins = SystemCoins()
    expected = int.from_bytes(bytes(range(256)) * 2 + bytes(range(255, -1, -1)) * 2, "big")
    taken, length = 0, 0
    for size in [1, 7, 64, 3, 4000, 21, 2000, 1000]:
        taken = taken << size | coins.bits(size)
        length += size
    assert taken == expected >> 8192 - length


def test_threads_share_no_bits():
    coins = SystemCoins()
    coins.bits(8)
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(coins.bits(256))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*drawn, coins.bits(256)}) == 5


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # the test runner's threads are not in play
def test_a_forked_child_does_not_repeat_its_parents_bits():
    coins = SystemCoins()
    coins.bits(8)  # the buffer is not empty when the child is made
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, coins.bits(256).to_bytes(32, "big"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(read, 32), "big") != coins.bits(256)
    os.close(read)
    os.close(write)


def test_what_runs_in_a_forked_child_throws_the_buffer_away(monkeypatch):
    registered, bought = [], []
    monkeypatch.setattr(
        os, "register_at_fork", lambda after_in_child: registered.append(after_in_child)
    )
    monkeypatch.setattr(os, "urandom", lambda n: bought.append(n) or bytes(n))
    coins = SystemCoins()
    coins.bits(8)
    coins.bits(8)
    assert len(bought) == 1
    (forget,) = registered
    forget()
    coins.bits(8)
    assert len(bought) == 2


def test_seeded_coins_repeat_and_differ_by_seed():
    assert [SeededCoins(1).bits(100) for _ in range(2)] == [SeededCoins(1).bits(100)] * 2
    assert SeededCoins(1).bits(100) != SeededCoins(2).bits(100)
    assert SeededCoins(1).bytes(50) == SeededCoins(1).bytes(50)
    one = SeededCoins(3)
    assert one.bytes(50) != one.bytes(50)


def test_a_script_says_how_many_coins_it_is_short():
    coins = ScriptedCoins(0b101, 3)
    assert (coins.bits(1), coins.bits(2)) == (1, 1)
    with pytest.raises(OutOfCoinsError) as short:
        coins.bits(5)
    assert short.value.missing == 5


def test_a_walk_counts_all_scripts():
    finished, unfinished = walk(lambda coins: coins.bits(1) or coins.bits(2), 2)
    assert finished == {1: 0.5}
    assert unfinished == 0.5
