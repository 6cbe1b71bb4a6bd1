"""Logs of a manager: text or JSON lines, with controller, object and reconcile id of the running reconcile."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import orjson

from pilothouse.machinery.objects import Json
from pilothouse.operator.controller import RECONCILE

LogFormat: TypeAlias = Literal["json", "text"]
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class ReconcileFormatter(logging.Formatter):
    """Formats a record as one JSON object or as text; `extra` fields are included."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        context = {**(RECONCILE.get() or {}), **fields}
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._form == "text":
            pairs = "".join(f" {name}={value}" for name, value in context.items())
            line = f"{moment} {record.levelname} {record.name}: {record.getMessage()}{pairs}"
            return f"{line}\n{trace}" if trace else line
        entry: Json = {
            "ts": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        return orjson.dumps(entry | context | ({"stacktrace": trace} if trace else {}), default=str).decode()


def configure_logging(form: LogFormat | None = None, level: int = logging.INFO) -> None:
    """Log to stderr, unless the program has configured logging. Default form: text on a terminal, else JSON."""
    if logging.root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(ReconcileFormatter(form or ("text" if sys.stderr.isatty() else "json")))
    logging.basicConfig(level=level, handlers=[handler])
