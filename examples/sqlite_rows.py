"""The rows of a table that was there before, as objects: written by kubectl, and by whoever else writes the table.

sqlite3 library.db 'create table books (isbn text primary key, title text not null, pages int not null default 0)'
DATABASE=library.db python examples/sqlite_rows.py --register
kubectl get books
"""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any

from pilothouse.builder import AGE, APIServer, Column, Minimum, MinLength, ObjectMeta, Resource

server = APIServer(group="library.example.com")


class Books:
    """Where the objects live. Each function is called when somebody asks, so nothing is ever out of date."""

    async def get(self, name: str, namespace: str) -> "Book | None":
        rows = await execute("select isbn, title, pages from books where isbn = ?", name)
        return Book.of(*rows[0]) if rows else None

    async def list(self, namespace: str) -> "Sequence[Book]":
        return [Book.of(*row) for row in await execute("select isbn, title, pages from books")]

    async def create(self, book: "Book") -> None:
        await execute("insert into books values (?, ?, ?)", book.name, book.spec.title, book.spec.pages)

    async def update(self, book: "Book") -> None:
        values = (book.spec.title, book.spec.pages, book.name)
        await execute("update books set title = ?, pages = ? where isbn = ?", *values)

    async def delete(self, name: str, namespace: str) -> None:
        await execute("delete from books where isbn = ?", name)


@server.resource(version="v1", namespaced=False, storage=Books())
class Book(Resource):
    """A row of the table. Its name is the ISBN."""

    @dataclass
    class Spec:
        title: Annotated[str, MinLength(1)]
        pages: Annotated[int, Minimum(0)] = 0

    columns = (Column("Title", ".spec.title"), Column("Pages", ".spec.pages", priority=1), AGE)

    @classmethod
    def of(cls, isbn: str, title: str, pages: int) -> "Book":
        return cls(metadata=ObjectMeta(name=isbn), spec=cls.Spec(title, pages))


async def execute(statement: str, *values: object) -> list[Any]:
    """In a thread: SQLite waits for the disk, and the server must not."""

    def run() -> list[Any]:
        with closing(sqlite3.connect(os.environ.get("DATABASE", "library.db"))) as database, database:
            return database.execute(statement, values).fetchall()

    return await asyncio.to_thread(run)


if __name__ == "__main__":
    server.run()
