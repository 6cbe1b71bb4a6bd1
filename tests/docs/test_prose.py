"""Docstrings and pages are plain English: few pronouns, and few clauses that begin with "what" or "who".

The shares of well-written code bases are 3 to 7 %, and below 0.2 %. A share above the limit means that sentences refer
to things by pronouns instead of names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRONOUNS = re.compile(
    r"(all|(any|every|no|some)(body|thing)|each|its?|none|ones?|others?|so|such|that|their|them|there|these|they|this"
    r"|those|which|whom|whose|whatever)"
)
QUESTION_WORDS = frozenset({"what", "who", "whoever"})


def docstrings() -> Iterator[str]:
    for file in sorted((ROOT / "pilothouse").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield (ast.get_docstring(node) or "").partition(">>>")[0]


def pages() -> Iterator[str]:
    for page in [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]:
        yield re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("texts", [docstrings, pages])
def test_sentences_name_things(texts: Callable[[], Iterator[str]]) -> None:
    words = [word.lower() for text in texts() for word in re.findall(r"[A-Za-z']+", text)]
    questions = sum(word in QUESTION_WORDS for word in words)
    assert (questions + sum(PRONOUNS.fullmatch(word) is not None for word in words)) / len(words) <= 0.07
    assert questions / len(words) <= 0.002
