"""Whether certificate files have changed: by what is in them, not by when they were written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.apiserver.file_watch import FileWatch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (made := tmp_path / "tls.crt").write_text("first")
    return made


def swap(file: Path, text: str) -> None:
    """Puts a new file in its place, as those do who rotate certificates."""
    (new := file.with_suffix(".new")).write_text(text)
    os.replace(new, file)


def test_a_file_has_changed_once_when_something_else_is_in_it(file: Path) -> None:
    watch = FileWatch([file])
    assert not watch.changed()
    swap(file, "other")
    assert watch.changed()
    assert not watch.changed()


def test_a_file_that_is_changed_back_has_changed_again(file: Path) -> None:
    watch = FileWatch([file])
    for text in ("other", "first", "other"):
        swap(file, text)
        assert watch.changed(), text


def test_a_file_that_is_written_as_it_was_has_not_changed(file: Path) -> None:
    watch = FileWatch([file])
    swap(file, "first")
    assert not watch.changed()


def test_a_file_that_goes_and_comes_has_changed_twice(file: Path) -> None:
    watch = FileWatch([file])
    file.unlink()
    assert watch.changed()
    assert not watch.changed()
    file.write_text("first")
    assert watch.changed()


def test_one_of_several_files_is_enough(file: Path) -> None:
    (key := file.with_suffix(".key")).write_text("key")
    watch = FileWatch([file, key])
    swap(key, "new key")
    assert watch.changed()
