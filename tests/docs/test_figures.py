"""Figures that README and documentation repeat are the figures of their source."""

from __future__ import annotations

import re
from pathlib import Path

from pilothouse.machinery import release
from tools.docs.reference.fidelity import recorded_steps

ROOT = Path(__file__).parents[2]


def test_the_readme_names_all_recorded_steps_of_the_default_version() -> None:
    steps = recorded_steps(release.DEFAULT)
    assert f"{steps} of {steps} recorded responses" in (ROOT / "README.md").read_text()


def test_documented_messages_are_in_the_code() -> None:
    page = (ROOT / "docs/reference/messages.md").read_text()
    [section] = re.findall(r"## Starting a server\n(.*?)\n## ", page, re.DOTALL)
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in (ROOT / "pilothouse").rglob("*.py")))
    flat = re.sub(r"\{[^{}]*\}|%\w", "…", code)
    documented = [message for row in re.findall(r"^\| (`--?.*?|`.*?) \|", section, re.MULTILINE) for message in [row]]
    for message in documented:
        words = re.findall(r"[^…`]{8,}", message.replace("` …", ""))
        assert words
        for part in words:
            assert any(part.strip(" :;") in text for text in (code, flat)), f"no code says {part!r}"
