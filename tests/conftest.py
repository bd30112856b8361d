"""What tests of several folders need."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))
sys.path.append(str(Path(__file__).resolve().parent))  # `by_name`
sys.path.append(str(Path(__file__).resolve().parent.parent))  # `lab`

import offline
import servers

offline.forbid()  # no test reaches another machine

for _name in ("PRIVMAX_LEDGER", "PRIVMAX_LEDGER_NAME"):  # no test charges a ledger of the developer
    os.environ.pop(_name, None)

ROOT = Path(__file__).resolve().parent.parent

QUICK = "not slow and not engines"
"""What runs when nothing else is asked for."""

EXAMPLES = 40
"""That Hypothesis tries of each property then, unless the test says how many. Otherwise it tries
100.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help=f'without it, and without paths or -m: -m "{QUICK}"'
    )
    parser.addoption(
        "--faults",
        choices=["few", "full"],
        default="few",
        help="how often bad days happen to ledgers; full stores counts (tests/ledger/faults)",
    )


def pytest_configure(config: pytest.Config) -> None:
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if not (named or config.option.markexpr or config.option.all):
        config.option.markexpr = QUICK  # which pytest-xdist hands on to its workers
    tests_run_here = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", 0)
    if _is_quick(config) and tests_run_here and config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import settings

        settings.register_profile("quick", max_examples=EXAMPLES)
        settings.load_profile("quick")


def _is_quick(config: pytest.Config) -> bool:
    """Whether it is the quick tests that run, and not others nor files that were named."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return config.option.markexpr == QUICK and not named


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The folder whose tests are all left out is not read: that takes a second in each process."""
    return True if _is_quick(config) and collection_path == ROOT / "tests/engines" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are made that stay: nobody looks for garbage among them, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)  # not 700: Hypothesis is called each time garbage is looked for


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    return (yield from _skip_what_is_missing())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    return (yield from _skip_what_is_missing())


def _skip_what_is_missing() -> Generator[None, object, object]:
    """Where a server is not installed its tests are skipped, or fail where all must run."""
    try:
        return (yield)
    except servers.Missing as missing:
        if os.environ.get("PRIVMAX_TEST_ENGINES") == "all":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))


_PLANS: dict[str, object] = {}
_PICTURES: dict[str, str] = {}


@pytest.fixture(scope="module")
def plans_made_once() -> Generator[None]:
    """Pages of one price and universe share their plan and its picture, most of the work on a
    page.
    """
    from privmax import Plan, plots
    from privmax.report import release_page

    make, draw, write = release_page.plan, plots.planning, plots.svg

    def shared(**terms: object) -> object:
        key = repr(terms)  # of a universe it says how many candidates there are
        if key not in _PLANS:
            _PLANS[key] = make(**terms)
        return _PLANS[key]

    def written(picture: object) -> str:
        of = [key for key, plan in _PLANS.items() if plan is picture]
        if not of:
            return write(draw(picture) if isinstance(picture, Plan) else picture)
        if of[0] not in _PICTURES:
            _PICTURES[of[0]] = write(draw(picture, wide=plots.NARROW))
        return _PICTURES[of[0]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_page, "plan", shared)
        patch.setattr(plots, "planning", lambda plan, **_: plan)  # drawn when it is written
        patch.setattr(plots, "svg", written)
        yield


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The documentation site as ./dev docs builds it, once for all processes of a run: a warning is
    a failure.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    built = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
            command += ["--config-file", "tools/mkdocs.yml"]
            environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
            command += ["--site-dir", str(shared / "unfinished")]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            (shared / "unfinished").rename(built)
    return built
