"""examples/sqlite_rows.py: a table and Kubernetes objects are two ways to see, and to change, the same."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from example_module import Running
from kubectl import Kubectl
from patience import PATIENCE

BOOK = '{"apiVersion": "library.example.com/v1", "kind": "Book", "metadata": {"name": "%s"}, "spec": {"title": "%s"}}'


class Table:
    def __init__(self, file: Path) -> None:
        self.file = file
        self("create table books (isbn text primary key, title text not null, pages int not null default 0)")

    def __call__(self, statement: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as database, database:
            return database.execute(statement, values).fetchall()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(tmp_path_factory.mktemp("library") / "library.db")


@pytest.fixture(scope="module")
def kubectl(running: Running, table: Table) -> Iterator[Kubectl]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE", str(table.file))
        with running("sqlite_rows") as (_, kubectl):
            yield kubectl


def test_what_is_written_to_the_table_is_seen_at_once(kubectl: Kubectl, table: Table) -> None:
    table("insert into books values ('e-1', 'Emma', 474)")
    assert kubectl("get", "books", "e-1", "-o", "wide", "--no-headers").split()[:3] == ["e-1", "Emma", "474"]
    table("update books set pages = 475 where isbn = 'e-1'")
    assert kubectl.json("get", "book", "e-1")["spec"] == {"title": "Emma", "pages": 475}
    table("delete from books where isbn = 'e-1'")
    assert "NotFound" in kubectl.fails("get", "book", "e-1")


def test_what_kubectl_writes_is_in_the_table(kubectl: Kubectl, table: Table) -> None:
    kubectl("create", "-f", "-", stdin=BOOK % ("d-1", "Dracula"))
    assert table("select * from books where isbn = 'd-1'") == [("d-1", "Dracula", 0)]
    assert "AlreadyExists" in kubectl.fails("create", "-f", "-", stdin=BOOK % ("d-1", "Dracula"))
    kubectl("patch", "book", "d-1", "--type=merge", "-p", '{"spec": {"pages": 418}}')
    assert table("select pages from books where isbn = 'd-1'") == [(418,)]
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=BOOK % ("d-1", "Dracula II"))
    assert table("select title from books where isbn = 'd-1'") == [("Dracula II",)]
    kubectl("delete", "book", "d-1")
    assert table("select * from books where isbn = 'd-1'") == []


def test_labels_are_kept_though_the_table_has_no_column_for_them(kubectl: Kubectl, table: Table) -> None:
    table("insert into books values ('l-1', 'Lady Susan', 80)")
    kubectl("label", "book", "l-1", "lent=yes")
    assert kubectl("get", "books", "-l", "lent=yes", "-o", "name") == "book.library.example.com/l-1\n"


def test_a_book_without_a_title_is_refused_before_the_table_is_asked(kubectl: Kubectl, table: Table) -> None:
    assert "spec.title" in kubectl.fails("create", "-f", "-", stdin=BOOK % ("n-1", ""))
    kubectl("create", "--dry-run=server", "-f", "-", stdin=BOOK % ("n-1", "Nothing"))
    assert table("select * from books where isbn = 'n-1'") == []


def test_a_watch_sees_what_somebody_else_writes(kubectl: Kubectl, table: Table) -> None:
    table("insert into books values ('w-1', 'Walden', 1)")
    watching = kubectl.start("get", "books", "-w", "-o", "jsonpath={.metadata.name} {.spec.pages}{'\\n'}")
    try:
        assert watching.stdout is not None
        _read_until(watching.stdout, "w-1 1\n")
        table("update books set pages = 352 where isbn = 'w-1'")
        _read_until(watching.stdout, "w-1 352\n")
    finally:
        watching.kill()
        watching.communicate()


def _read_until(lines: Any, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while lines.readline() != wanted:
        assert time.monotonic() < deadline
