"""Extension API servers: declare resources as classes, and run.

server = APIServer(group="wardle.example.com")

@server.resource(version="v1alpha1")
class Flunder(Resource):
    ...

server.run()

`__init__.pyi` lists the public names; docs/how-to/extension-servers.md is the tutorial.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
