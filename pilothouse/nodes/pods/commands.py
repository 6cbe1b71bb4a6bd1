"""What is known of a container's end from its command: enough for the scripts that tests and examples use.

`sleep 5`, `true`, `false`, `exit 3` and lists of these and of `echo` have a known end. Of all other programs nothing is
known, and the restart policy decides.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

FOREVER = float("inf")

_SHELLS = {"sh", "bash", "ash", "dash"}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SEPARATORS = re.compile(r"\s*(?:;|&&|\n)\s*")


@dataclass(frozen=True, slots=True)
class End:
    after: float
    exit_code: int = 0


def known_end(spec: Json) -> End | None:
    """Return when and how the container ends by itself, if its command tells; FOREVER for one that never does."""
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    if not words:
        return End(FOREVER) if "pause" in (spec.get("image") or "").rsplit("/", 1)[-1] else None
    return _end_of("\0".join(words))


@bounded_cache(entries=512, key_bytes=512)
def _end_of(joined: str) -> End | None:
    words = joined.split("\0")
    if _program(words) in _SHELLS and len(words) == 3 and words[1].startswith("-") and words[1].endswith("c"):
        return _end_of_script(words[2])
    return _end_of_command(words)


def _end_of_script(script: str) -> End | None:
    seconds, code = 0.0, 0
    for part in filter(None, _SEPARATORS.split(script.strip())):
        try:
            words = shlex.split(part)
        except ValueError:
            return None
        end = _end_of_command(words)
        if end is None:
            return None
        seconds, code = seconds + end.after, end.exit_code
        if _program(words) == "exit":
            break
    return End(seconds, code)


def _end_of_command(words: Sequence[str]) -> End | None:
    program = _program(words)
    if program == "sleep" and len(words) == 2:
        return _sleep(words[1])
    if program == "exit" and len(words) <= 2:
        return End(0.0, int(words[1]) % 256) if words[1:] and words[1].isdigit() else None if words[1:] else End(0.0)
    if program == "pause":
        return End(FOREVER)
    if program == "echo" and not any(">" in word or "|" in word or "$(" in word for word in words):
        return End(0.0)
    return {"true": End(0.0), ":": End(0.0), "false": End(0.0, 1)}.get(program) if len(words) == 1 else None


def _sleep(text: str) -> End | None:
    if text in ("inf", "infinity"):
        return End(FOREVER)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    return End(float(found[1]) * _UNITS[found[2]]) if found else None


def _program(words: Sequence[str]) -> str:
    return words[0].rsplit("/", 1)[-1] if words else ""
