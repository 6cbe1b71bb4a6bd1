"""The generic API server. It contains no Kubernetes kind: it serves the resources that you register.

    config = GenericConfig(await SqliteStore.open(Path("data")))
    server = config.new_server("wardle", not_found(config.lifecycle.mux_and_discovery_complete))
    install_api_group(server, group, Installer(AdmissionChain(), config.authorizer))

`pilothouse.builder` builds such a server from declared classes. `__init__.pyi` lists the public names;
tests/apiserver/server/test_server_from_its_parts.py assembles a whole server.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
