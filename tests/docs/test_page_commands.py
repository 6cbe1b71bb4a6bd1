"""What a command prints is compared with what the page shows below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.running.commands import commands_in, fits
from tools.docs.running.process import run_page


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a", "a\n"),
        ("NAME AGE\na ...", "NAME   AGE\na      5s\n"),
        ("...\nlast", "first\nsecond\nlast\n"),
        ("a\n...", "a\n"),
        ("a", "I1116 18:45:43.555106   25590 serve.py:59] Version: v1.36.4\na\n"),
        ("a", "\x1b[31ma\x1b[0m\n\n"),
    ],
)
def test_output_fits(expected: str, printed: str) -> None:
    assert fits(expected.split("\n"), printed)


@pytest.mark.parametrize(
    ("expected", "printed"), [("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("a ... c", "a b\nc"), ("a.", "ab")]
)
def test_output_does_not_fit(expected: str, printed: str) -> None:
    assert not fits(expected.split("\n"), printed)


def test_a_command_may_have_several_lines() -> None:
    text = "$ a \\\n  b\nprinted\n$ cat <<END\n$ no command\nEND\n$ c &\n^C\n"
    commands = commands_in(text)
    assert [command.text for command in commands] == ["a \\\n  b", "cat <<END\n$ no command\nEND", "c &", "^C"]
    assert [command.goes_on for command in commands] == [False, False, True, False]
    assert commands[0].expected == ["printed"]


def test_a_page_is_done_from_top_to_bottom(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```python title="a/b.py"\nprint(1)\n```\n'
        "```console\n$ cd a && export B=2\n$ python b.py\n1\n$ sleep 60 &\n$ kill %1; wait\n$ ls c\nls: ...c...\n```\n"
        '```python\nimport os\nassert os.environ["B"] == "2"\nasync def test_c():\n    raise SystemError("seen")\n```\n'
    )
    done = run_page(page, capture=True)
    assert done.stderr == f"{page}:14: SystemError: seen\n"


def test_a_page_that_shows_something_else_fails_with_both(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```console\n$ echo a\nb\n```\n")
    done = run_page(tmp_path / "page.md", capture=True)
    assert done.returncode == 1
    assert done.stderr.endswith("page.md:2: $ echo a\n--- the page shows\nb\n--- it printed\na\n\n")
