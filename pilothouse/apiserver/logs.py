"""The log: stdlib logging on stderr, in klog's text format or as JSON.

klog's verbosity maps to levels below INFO: `log.log(v(2), …)` is written with -v=2 or more. Callers must not pass
tokens, keys or secrets: the log does not redact.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from pilothouse.machinery.gofmt import quote

_PAIRS = "pairs"
_LETTERS = {logging.CRITICAL: "F", logging.ERROR: "E", logging.WARNING: "W"}


def v(verbosity: int) -> int:
    """Return the level of klog's V(verbosity); values above 10 count as 10."""
    return logging.INFO - min(max(verbosity, 0), 10)


def configure(*, verbosity: int = 0, format: str = "text", stream: TextIO | None = None) -> None:
    """Configure the root logger, replacing earlier configuration."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == "json" else KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(v(verbosity))
    for noisy in ("asyncio", "uvicorn", "aiohttp"):
        logging.getLogger(noisy).setLevel(max(v(verbosity), logging.WARNING) if verbosity < 6 else v(verbosity))


def log_pairs(logger: logging.Logger, level: int, message: str, pairs: Mapping[str, object]) -> None:
    """Log a message with structured fields: `"HTTP" verb="GET" resp=200`, or fields of the JSON format."""
    logger.log(level, message, extra={_PAIRS: pairs}, stacklevel=2)


_process = ""


def set_process(name: str) -> None:
    """Name this process of the server in every following line."""
    global _process
    _process = name


class KlogFormatter(logging.Formatter):
    """`I0102 15:04:05.000000   1234 module.py:56] message`, as klog writes it."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        head = f"{letter(record.levelno)}{moment}.{micros:06d} {os.getpid():7d} {record.filename}:{record.lineno}]"
        process = f"[{_process}] " if _process else ""
        text = f"{head} {process}{_text(record)}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One object per line with the keys of upstream's JSON format: ts in milliseconds, caller, msg, v or err."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        line.update(getattr(record, _PAIRS, {}))
        if _process:
            line["process"] = _process
        if record.levelno <= logging.INFO:
            line["v"] = max(logging.INFO - record.levelno, 0)
        else:
            line["level"] = record.levelname.lower()
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _text(record: logging.LogRecord) -> str:
    pairs: Mapping[str, object] | None = getattr(record, _PAIRS, None)
    if pairs is None:
        return record.getMessage()
    written = (f"{key}={quote(value) if isinstance(value, str) else value}" for key, value in pairs.items())
    return " ".join((quote(record.getMessage()), *written))


def letter(level: int) -> str:
    for least, name in _LETTERS.items():
        if level >= least:
            return name
    return "I"
