"""The console beside a server."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from patience import PATIENCE

from pilothouse.client.config.model import ClientConfig
from pilothouse.console.server import start_in_background


def test_beside_a_server_its_address_opens_it_and_a_taken_port_is_told() -> None:
    config = ClientConfig(host="http://127.0.0.1:1")
    address = start_in_background(config)
    with urlopen(address, timeout=PATIENCE) as answer:
        assert "HttpOnly" in answer.headers["set-cookie"]
    with pytest.raises(HTTPError, match="401"):
        urlopen(address, timeout=PATIENCE)
    with pytest.raises(OSError, match="in use"):
        start_in_background(config, port=urlsplit(address).port or 0)
