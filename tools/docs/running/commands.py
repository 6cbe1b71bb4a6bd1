"""Console blocks: which commands they have, and what each of them is expected to print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PROMPT = "$ "
INTERRUPT = "^C"
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_SERVES = re.compile(r"^pilothouse (?:serve|console|dev)\b(?!.*(?:--help|-h\b))")
_LOG_LINE = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n?", re.MULTILINE)
_JOB_ENDED = re.compile(r"^.*: line \d+: +\d+ [A-Z].* source \S+/job-\d+\.sh .*\n?", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Command:
    """`line` is that of the block. `expected` is what is shown below it; where nothing is, anything may be printed."""

    line: int
    text: str
    expected: list[str] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether it runs beside the commands that follow."""
        return bool(_SERVES.match(self.text)) or (self.text.endswith("&") and not self.text.endswith("&&"))


def commands_in(text: str) -> list[Command]:
    """Return the commands of a console block. Raises ValueError where it does not begin with one."""
    commands: list[Command] = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if line.startswith(PROMPT) or line == INTERRUPT:
            commands.append(Command(number, _whole(line.removeprefix(PROMPT), lines).strip()))
        elif commands:
            commands[-1].expected.append(line)
        elif line.strip():
            raise ValueError(f"line {number} is neither a command ({PROMPT}…) nor what one has printed: {line}")
    return commands


def _whole(line: str, following: enumerate[str]) -> str:
    """Return a command with its further lines: after a backslash, and of a here document."""
    lines = [line]
    while lines[-1].endswith("\\"):
        lines.append(next(following)[1])
    if marker := _HEREDOC.search("\n".join(lines)):
        while lines[-1].strip() != marker[1]:
            lines.append(next(following)[1])
    return "\n".join(lines)


def as_printed(output: str) -> str:
    """Return output without colours, and without what comes when it likes: logs, and bash on jobs that end."""
    return _JOB_ENDED.sub("", _LOG_LINE.sub("", _COLOUR.sub("", output)))


def fits(expected: list[str], output: str, *, so_far: bool = False) -> bool:
    """Whether that was printed, `so_far` for a command that has not ended. A line `...` is any number of lines, `...`
    in a line is anything; how many spaces stand between words does not matter, nor do those at the ends."""
    lines = [*expected, "..."] if so_far else expected
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else _line_pattern(line) + r"[ \t]*\n" for line in lines)
    return re.fullmatch(pattern + r"\s*", as_printed(output).rstrip() + "\n") is not None


def _line_pattern(line: str) -> str:
    words = ("[ \\t]+".join(map(re.escape, re.split(r"\s+", part))) for part in line.rstrip().split("..."))
    return ".*".join(words)
