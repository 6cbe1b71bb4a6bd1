"""Extension API servers in a few lines: declare resources as classes, and run.

server = APIServer(group="wardle.example.com")

@server.resource(version="v1alpha1")
class Flunder(Resource):
    ...

server.run()

The public names are those in `__init__.pyi`; docs/how-to/extension-servers.md leads through them.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
