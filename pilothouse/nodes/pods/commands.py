"""Prediction of a container's exit from its command, for the scripts of tests and examples.

`sleep 5`, `true`, `false`, `exit 3`, and lists of these and of `echo`, have a known exit; `while true` never exits. For
other programs the restart policy decides, but a script runs at least as long as it sleeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

FOREVER = float("inf")

_SHELLS = {"sh", "bash", "ash", "dash"}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SEPARATORS = re.compile(r";|&&|\n")
_ENDLESS = re.compile(r"(?:^|[;&\n])[^\S\n]*+while\s++(?:true|:|\[ 1 \])[^\S\n]*+[;\n]\s*+do\b")
_BRANCHES = re.compile(r"\b(?:if|case|for|while|until)\b|\|\|")
_LEAVES = re.compile(r"\b(?:break|exit|return|kill)\b")
_PLAIN_ECHO = re.compile(r"""(?:[^'"\\>|]++|\\.|'[^'>|]*+'|"(?:[^"\\>|]++|\\.)*+")*+""")
_LONGEST, _LONGEST_SLEEPING, _LONGEST_KNOWN = 64 * 1024, 4096, 1024
"""Maximum characters of scripts that are searched for endless loops, searched for sleeps, and parsed."""
_MOST_PARTS = 64
_NO_QUOTES = str.maketrans("", "", "\"'")


@dataclass(frozen=True, slots=True)
class End:
    after: float
    exit_code: int = 0


def known_end(spec: Json) -> End | None:
    """Return the predicted exit of the container; FOREVER if the command never exits, None if unknown."""
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    if not words:
        return End(FOREVER) if "pause" in (spec.get("image") or "").rsplit("/", 1)[-1] else None
    return None if _is_long(words) else _end_of("\0".join(words))


def shortest_run(spec: Json) -> float:
    """Return the total sleep seconds of an otherwise unknown script without branches."""
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    return 0.0 if _is_long(words) else _sleeps("\0".join(words))


def _is_long(words: Sequence[str]) -> bool:
    return len(words) > _MOST_PARTS or sum(map(len, words)) > _LONGEST


@bounded_cache(entries=512, key_bytes=512)
def _end_of(joined: str) -> End | None:
    words = joined.split("\0")
    script = _script(words)
    return _end_of_command(words) if script is None else _end_of_script(script)


@bounded_cache(entries=512, key_bytes=512)
def _sleeps(joined: str) -> float:
    script = _script(joined.split("\0")) or ""
    if len(script) > _LONGEST_SLEEPING or _BRANCHES.search(script):
        return 0.0
    parts = (part.strip() for part in _SEPARATORS.split(script))
    ends = (_sleep(part.removeprefix("sleep").strip()) for part in parts if part.startswith("sleep "))
    return sum(end.after for end in ends if end is not None)


def _script(words: Sequence[str]) -> str | None:
    """Return the script of `sh -c`; None for other programs."""
    is_shell = _program(words) in _SHELLS and len(words) == 3 and words[1].startswith("-") and words[1].endswith("c")
    return words[2] if is_shell else None


def _end_of_script(script: str) -> End | None:
    if _ENDLESS.search(script) and not _LEAVES.search(script):
        return End(FOREVER)
    parts = _SEPARATORS.split(script.strip(), _MOST_PARTS) if len(script) <= _LONGEST_KNOWN else []
    if not 0 < len(parts) <= _MOST_PARTS:
        return None
    seconds, code = 0.0, 0
    for part in filter(None, map(str.strip, parts)):
        words = part.translate(_NO_QUOTES).split()
        is_plain = _program(words) != "echo" or ("$(" not in part and _PLAIN_ECHO.fullmatch(part))
        end = _end_of_command(words) if is_plain else None
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
        code = words[1] if words[1:] else "0"
        # 256 divides 10^8, so eight digits determine the remainder.
        return End(0.0, int(code[-8:]) % 256) if code.isdecimal() else None
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
