"""Parts that the client's tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from api_server_fixture import ApiServer

from pilothouse.client.config.model import ClientConfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer().run() as running:
        yield running


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with connect(ClientConfig(host=server.url, qps=0)) as connected:
        yield connected
