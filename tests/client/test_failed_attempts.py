"""One function logs failed attempts: a traceback is the mark of a bug, and of nothing else."""

from __future__ import annotations

import ast
import importlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import pilothouse
from pilothouse.client.rest.errors import ConnectionRefused, RequestTimedOut
from pilothouse.errors import Conflict, Forbidden, NotFound, PilothouseError
from pilothouse.machinery.failed_attempts import log_failed_attempt

PACKAGE = Path(pilothouse.__file__).parent
CONFLICT = Conflict("the object has been modified")
RETRYING = ("client", "controllers", "scheduler")
"""Folders whose work is repeated after an error."""
PANICS = {
    "apiserver/admission/webhook/validating.py",
    "apiserver/filters/panic_recovery.py",
    "apiserver/serving/exchange.py",
    "builder/function_backed/functions.py",
    "machinery/failed_attempts.py",
    "operator/endpoints.py",
    "operator/webhook_server.py",
}
"""Modules in which an error of any class is a bug, of ours or of an author's function."""
LOG = logging.getLogger("attempts")


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (CONFLICT, logging.INFO),
        (NotFound("no pod a"), logging.INFO),
        (ExceptionGroup("", [CONFLICT, NotFound("no pod a")]), logging.INFO),
        (Forbidden("it is going", details={"causes": [{"reason": "NamespaceTerminating"}]}), logging.INFO),
        (Forbidden("no"), logging.WARNING),
        (ConnectionRefused("connection refused"), logging.WARNING),
        (RequestTimedOut("timed out"), logging.WARNING),
        (TimeoutError(), logging.WARNING),
        (ExceptionGroup("", [CONFLICT, TimeoutError()]), logging.WARNING),
    ],
)
def test_an_error_that_a_retry_expects_is_one_line(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        log_failed_attempt(LOG, error, "cannot write %s", "pod a")
        log_failed_attempt(LOG, error, "cannot write %s", "pod a", final=True)
    first, last = caplog.records
    assert (first.levelno, last.levelno) == (level, logging.ERROR)
    assert all(
        record.exc_info is None and record.getMessage().startswith("cannot write pod a: ") for record in (first, last)
    )
    assert first.filename == Path(__file__).name


@pytest.mark.parametrize("error", [KeyError("spec"), ExceptionGroup("", [CONFLICT, TypeError("no list")])])
def test_a_bug_has_a_traceback(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    log_failed_attempt(LOG, error, "cannot write %s", "pod a")
    (record,) = caplog.records
    assert (record.levelno, record.exc_info and record.exc_info[1]) == (logging.ERROR, error)


def test_no_other_code_logs_tracebacks() -> None:
    modules = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "exc_info" in (text := path.read_text()) or "exception" in text
        if any(_logs_traceback(node) for node in ast.walk(ast.parse(text)))
    }
    assert modules == PANICS


def _logs_traceback(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_exception = node.func.attr == "exception" and bool(node.args)  # a future's has no arguments
    return is_exception or any(keyword.arg == "exc_info" for keyword in node.keywords)


def test_errors_of_code_that_is_retried_are_expected_errors() -> None:
    deliberate = (PilothouseError, OSError, AssertionError)  # a failed assertion is a bug
    assert [error for error in _declared_errors() if not issubclass(error, deliberate)] == []


def _declared_errors() -> Iterator[type[Exception]]:
    for folder in RETRYING:
        for path in (PACKAGE / folder).rglob("*.py"):
            name = ".".join(("pilothouse", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
            for declared in vars(importlib.import_module(name)).values():
                if isinstance(declared, type) and issubclass(declared, Exception) and declared.__module__ == name:
                    yield declared
