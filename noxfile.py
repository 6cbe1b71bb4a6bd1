"""Developer commands: `.venv/bin/nox -s fast` runs one, `.venv/bin/nox -l` lists all.

Sessions run in the environment that nox is installed in, which `pip install -e '.[dev]'` has prepared: no session
installs a package. `nox -fb venv -s test` makes a fresh environment for the session instead; with `-R` as well, nox
reuses that environment and installs nothing again. Without `-fb`, `-R` changes nothing.

Arguments after `--` go to the tool of the session: `nox -s fast -- -x -k scheduler`.
"""

from __future__ import annotations

import re
import shlex
import sys
from functools import cache
from pathlib import Path

import nox

ROOT = Path(__file__).parent
IN_PARALLEL = ("-n", "auto", "--dist", "loadfile")
BENCHMARKS = ("benchmarks/decode.py", "benchmarks/http2_codecs.py", "benchmarks/rbac.py")
"""Benchmarks that end within a minute and need no other program."""

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["fast"]


@nox.session
def test(session: nox.Session) -> None:
    """Run the tests as the README does."""
    command = re.search(r"^Run all tests:\n\n    .* && \.venv/bin/python (.+)$", (ROOT / "README.md").read_text(), re.M)
    assert command is not None, "README.md: no command below 'Run all tests:'"
    _python(session, *shlex.split(command[1]), *session.posargs)


@nox.session
def fast(session: nox.Session) -> None:
    """Run the fast lane: a minute of tests for all packages, before each commit."""
    _python(session, "-m", "pytest", "-m", "fast", *IN_PARALLEL, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that the README's command leaves out because they take long."""
    _python(session, "-m", "pytest", "-m", "slow", *IN_PARALLEL, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and import contracts."""
    _tool(session, "ruff", "check", ".")
    _tool(session, "ruff", "format", "--check", ".")
    _tool(session, "lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the package, tests, tools, benchmarks and examples."""
    _tool(session, "mypy", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of the documentation; warnings and dead links are errors."""
    _python(session, "-m", "tools.docs", "build", *session.posargs)


@nox.session
def console(session: nox.Session) -> None:
    """Check the console's page: lock files, types, its own tests, and the tests in a browser."""
    _python(session, "-m", "tools.checks.lock_files")
    session.run("npm", "--prefix", "console", "ci", external=True)
    session.run("npm", "--prefix", "console", "run", "check", external=True)
    session.run("npm", "--prefix", "console", "run", "lint", external=True)
    session.run("npm", "--prefix", "console", "test", external=True)
    _python(session, "-m", "pytest", "-m", "", "tests/console", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run benchmarks: `nox -s bench -- benchmarks/store.py`, by default those that take seconds."""
    if session.posargs:
        _python(session, *session.posargs)
        return
    for script in BENCHMARKS:
        _python(session, script)


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure the fast lane's coverage, and compare it with the floor in .ci/coverage-floor."""
    _tool(session, "coverage", "erase")
    _tool(session, "coverage", "run", "-m", "pytest", "-m", "fast", *IN_PARALLEL, *session.posargs)
    _tool(session, "coverage", "combine", "--quiet")
    _python(session, "-m", "tools.checks.coverage_floor")


def _python(session: nox.Session, *words: str) -> None:
    _tool(session, "python", *words)


def _tool(session: nox.Session, name: str, *words: str) -> None:
    """Run a program of the session's environment, or of the environment of nox; an inactive one is not in PATH."""
    if session.venv_backend == "none":
        session.run(str(Path(sys.executable).with_name(name)), *words, external=True)
    else:
        _install(session)
        session.run(name, *words)


@cache
def _install(session: nox.Session) -> None:
    session.install("-q", "-e", ".[dev]")
