"""Two versions of one kind: the older one stays served, is converted both ways, and only the newer one is stored.

python examples/legacy.py --register
kubectl get backends.v1beta1.legacy.example.com -o yaml       # spec.address: example.com:80
kubectl get backends.v1.legacy.example.com -o yaml            # spec.host: example.com, spec.port: 80
"""

from dataclasses import dataclass
from typing import Annotated

from pilothouse.builder import AGE, APIServer, Column, Errors, Maximum, Minimum, Pattern, Resource, Scale, invalid

server = APIServer(group="legacy.example.com")


@dataclass
class BackendStatus:
    replicas: int = 0


@server.resource(version="v1", storage_version=True)
class Backend(Resource):
    """Where requests are sent to."""

    @dataclass
    class Spec:
        host: str
        port: Annotated[int, Minimum(1), Maximum(65535)] = 80
        replicas: Annotated[int, Minimum(0)] = 1

    Status = BackendStatus
    columns = (Column("Host", ".spec.host"), Column("Port", ".spec.port"), AGE)
    scale = Scale()


@server.resource(version="v1beta1", kind="Backend", deprecated="")
class OldBackend(Resource):
    """Where requests are sent to, as one string."""

    @dataclass
    class Spec:
        address: Annotated[str, Pattern(r"^.+:[0-9]{1,5}$")]
        replicas: Annotated[int, Minimum(0)] = 1

    Status = BackendStatus
    columns = (Column("Address", ".spec.address"), AGE)
    scale = Scale()

    def validate(self, old: "OldBackend | None") -> Errors:
        if not 0 < int(self.spec.address.rpartition(":")[2]) < 65536:
            yield invalid("spec.address", self.spec.address, "must end with a port")

    def convert_to(self, stored: type[Backend]) -> Backend:
        host, _, port = self.spec.address.rpartition(":")
        spec = stored.Spec(host, int(port), self.spec.replicas)
        return stored(metadata=self.metadata, spec=spec, status=self.status)

    @classmethod
    def convert_from(cls, stored: Backend) -> "OldBackend":
        spec = cls.Spec(f"{stored.spec.host}:{stored.spec.port}", stored.spec.replicas)
        return cls(metadata=stored.metadata, spec=spec, status=stored.status)


if __name__ == "__main__":
    server.run()
