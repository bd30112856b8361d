"""The common part of all compiled code: its compilation, and one instruction of the processor.

Needs numba (the extra `fast`), so only files of kernels import it, and those are imported only
where numba is installed.

numba compiles an entry again when the file that defines it changes, and does not look at other
files. So an entry and the parts it calls are in one file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
from numba.extending import intrinsic

from privmax.display import on_terminal

_njit: Any = numba.njit  # whose annotations leave some of its options out


def entry(function: Any) -> Any:
    """Compile a kernel that Python calls, once, and keep the result beside its file.

    Args:
        function: What to compile. Threads may run it side by side.

    Returns:
        The compiled function.
    """
    kernel = _njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    _forgive_old_files(kernel._cache._cache_file)
    return kernel


def _forgive_old_files(file: Any) -> None:
    """Compile again where a file of numba's cache cannot be read.

    Another version of privmax may have left it: the file names classes of that version, and numba
    reads them before it looks whether the source has changed. That would fail during a draw.
    """

    def forgiving(read: Callable[..., Any], without: Callable[[], Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return read(*arguments)
            except Exception:  # whatever unpickling a damaged file may raise
                return without()

        return call

    file._load_index = forgiving(file._load_index, dict)
    file._load_data = forgiving(file._load_data, lambda: None)


def tell_of_compiling(kernels: Sequence[Any], what: str) -> None:
    """Say on a terminal or in a notebook that kernels are about to be compiled.

    It takes a while and is done once. Nothing is said where an earlier process has left the result.

    Args:
        kernels: What `entry` returned.
        what: What they do.
    """
    if not (on_terminal() or "ipykernel" in sys.modules):
        return
    if any(not kernel.signatures and not _is_kept(kernel) for kernel in kernels):
        print(f"Compiling {what}, once on this machine: about half a minute …", file=sys.stderr)


def _is_kept(kernel: Any) -> bool:
    """Return whether a compiled form of a kernel is in numba's cache."""
    try:
        implementation = kernel._cache._impl
        folder = Path(implementation.locator.get_cache_path())
        return any(folder.glob(f"{implementation.filename_base}*.nbi"))
    except Exception:  # numba keeps it elsewhere: then nothing is known
        return True


def step(function: Any) -> Any:
    """Compile a function that only kernels call.

    Args:
        function: What to compile. It may make arrays.

    Returns:
        What kernels can call.
    """
    return _inner(function)


def part(function: Any) -> Any:
    """Compile a piece of a kernel into its callers, for the innermost loops.

    It must not make arrays: the caller keeps the arrays alive, so that their users need not
    be counted.

    Args:
        function: What to compile.

    Returns:
        What kernels can call.
    """
    return _inner(function, forceinline=True)


def _inner(function: Any, **options: Any) -> Any:
    return _njit(
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)


def _population(context: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return numba.int64(numba.uint64), code


count_ones: Any = intrinsic(_population)
"""Counts the set bits of a word of 64: the processor's own instruction, for kernels only."""
