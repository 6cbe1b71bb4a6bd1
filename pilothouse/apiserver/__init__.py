"""The generic API server. It knows no Kubernetes kind: give it resources and it serves them.

    config = GenericConfig(await SqliteStore.open(Path("data")))
    server = config.new_server("wardle", not_found(config.lifecycle.mux_and_discovery_complete))
    install_api_group(server, group, Installer(AdmissionChain(), config.authorizer))

`pilothouse.builder` makes a server of these parts from classes that are declared. The public names are those in
`__init__.pyi`; tests/apiserver/server/test_server_from_its_parts.py puts a whole server together from them.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
