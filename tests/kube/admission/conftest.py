"""A server and admission webhooks over real TLS, once for each file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from admission_webhooks import AdmissionWebhooks, admission_webhooks
from whole_server import whole_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hooks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AdmissionWebhooks]:
    async with whole_server(tmp_path_factory.mktemp("store")) as api, admission_webhooks(api) as hooks:
        yield hooks
