"""Forks of every kind, for tests of what a child may do with a ledger of its parent."""

from __future__ import annotations

import ctypes
import os


def raw_fork():
    """A fork that Python does not hear of, as servers written in C make them."""
    return ctypes.CDLL(None).fork()


def fork_in_a_namespace():
    """A fork into a namespace, where the child may be given the number of its parent."""
    number, getpid = os.getpid(), os.getpid
    os.getpid = lambda: number
    child = os.fork()
    if child:
        os.getpid = getpid
    return child
