"""An extension server for aggregator.py: the same objects in the embedded store, and in the author's own functions."""

from collections.abc import Sequence
from dataclasses import dataclass

from pilothouse.builder import APIServer, ObjectMeta, Resource

server = APIServer(group="things.example.com")


@server.resource(version="v1")
class Thing(Resource):
    @dataclass
    class Spec:
        data: str = ""


class Objects:
    async def get(self, name: str, namespace: str) -> "Own":
        return Own(metadata=ObjectMeta(name=name, namespace=namespace), spec=Own.Spec("x" * 900))

    async def list(self, namespace: str) -> "Sequence[Own]":
        return [await self.get("a", "default")]


@server.resource(version="v1", storage=Objects())
class Own(Resource):
    @dataclass
    class Spec:
        data: str = ""


if __name__ == "__main__":
    server.run()
