"""Webhooks that answer reviews over real TLS, and the kubeconfigs that lead to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from webhook_server import WebhookServer, webhook_server

from pilothouse.client import Json

Decide = Callable[[Json], Json | int]
"""From the review to its status, or to an HTTP code."""


@dataclass
class ReviewServer:
    decide: Decide
    reviews: list[Json] = field(default_factory=list)
    server: WebhookServer = field(default=None)  # type: ignore[assignment]  # there when it listens

    async def answer(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        self.reviews.append(review)
        status = self.decide(review)
        if isinstance(status, int):
            return web.Response(status=status, text="broken")
        return web.json_response(review | {"status": status})

    def kubeconfig(self, folder: Path) -> Path:
        return write_kubeconfig(folder, f"https://127.0.0.1:{self.server.port}/review", self.server.ca_bundle)


def write_kubeconfig(folder: Path, url: str, ca_bundle: str) -> Path:
    file = folder / "webhook.kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters:\n- name: c\n  cluster: {{server: '{url}', certificate-authority-data: {ca_bundle}}}\n"
        "users:\n- name: u\n  user: {}\n"
        "contexts:\n- name: c\n  context: {cluster: c, user: u}\n"
    )
    return file


@asynccontextmanager
async def review_server(decide: Decide) -> AsyncIterator[ReviewServer]:
    reviews = ReviewServer(decide)
    async with webhook_server(reviews.answer) as server:
        reviews.server = server
        yield reviews
