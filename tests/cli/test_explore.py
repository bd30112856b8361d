"""`privmax explore` and `privmax report` as they are typed."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner

from privmax.cli import main


def run(*words: str, **options):
    return CliRunner().invoke(main, list(words), **options)


@pytest.fixture
def ledger(tmp_path):
    file = str(tmp_path / "budget.db")
    assert not run("budget", "create", file, "--epsilon", "3", "--delta", "1e-5").exit_code
    asked = ("--item", "query", "--score", "people", "--epsilon", "1", "--delta", "1e-6")
    paid = ("--ledger", file, "--request", "one", "--dataset", "counts")
    assert not run("select", "sample:counts", *asked, *paid).exit_code
    return file


def test_a_report_writes_both_files(ledger, tmp_path):
    entry, listed = str(tmp_path / "out.yaml"), str(tmp_path / "out.md")
    found = run("report", "--ledger", ledger, "--registry", entry, "--checklist", listed)
    assert not found.exit_code, found.output
    assert "fields are for a person" in found.output
    with open(entry, encoding="utf-8") as file:
        read = yaml.safe_load(file)
    assert read["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    with open(listed, encoding="utf-8") as file:
        assert file.read().startswith("# Checklist in the terms of NIST SP 800-226")


def test_a_report_is_printed_and_takes_the_ledger_of_the_environment(ledger):
    found = run("report", "--tier", "1", "--request", "one", env={"PRIVMAX_LEDGER": ledger})
    assert not found.exit_code
    assert "variant_name" not in found.stdout
    assert yaml.safe_load(found.stdout)["deployment"]["administrative"]["tier"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Add --ledger FILE"),
        (("--ledger", "none.db"), "none.db"),
        (("--ledger", "LEDGER", "--request", "other"), "no request 'other'"),
        (("--ledger", "LEDGER", "--registry", "out.txt"), "--registry out.txt"),
        (("--ledger", "LEDGER", "--registry", "LEDGER"), "--registry"),
        (("--ledger", "LEDGER", "--tier", "4"), "--tier"),
        (("--ledger", ".",), "it is a folder"),
    ],
)  # fmt: skip
def test_a_report_that_cannot_be_made_says_why(ledger, words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("report", *(ledger if word == "LEDGER" else word for word in words))
    assert found.exit_code == 2
    assert told in found.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--data", "log"), "NAME=FILE"),
        (("--data", "log=log.csv"), "--columns log=query"),
        (("--data", "log=log.csv", "--columns", "log=a"), "--user log=COLUMN"),
        (("--data", "try=sample:searches"), "--data needs --ledger"),
        (("--data", "a/b=x.csv"), "a name has letters"),
        (("--columns", "log=a"), "with the NAME of a --data"),
        (("--datasets", "none.toml"), "none.toml"),
        (("--ledger", "none.db"), "none.db"),
        (("--ledger", ".",), "it is a folder"),
        (("--host", "0.0.0.0"), "--reason"),
        (("--host", "no.such.host.invalid", "--reason", "x"), "--host no.such.host.invalid"),
        (("--data", "log=none.csv", "--columns", "log=a", "--unit", "log=row"), "'none.csv': No"),
        (("--data", "log=postgres://u:hunter2@db", "--columns", "log=a"), "--user"),
    ],
)  # fmt: skip
def test_a_start_that_makes_no_sense_says_why(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("explore", *words)
    assert found.exit_code == 2, found.output
    assert told in found.output
    assert "hunter2" not in found.output


def test_a_port_in_use_is_named(tmp_path):
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        found = run("explore", "--port", str(other.getsockname()[1]))
    assert found.exit_code == 2
    assert "--port 0" in found.output


def test_without_its_packages_the_command_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "starlette", None)
    found = run("explore")
    assert found.exit_code == 2
    assert "explore" in found.output
    assert "install" in found.output.lower()
