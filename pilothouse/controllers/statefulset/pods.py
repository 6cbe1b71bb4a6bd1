"""Creation, update and deletion of a StatefulSet's pods, with events."""

from __future__ import annotations

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import PODS
from pilothouse.controllers.statefulset import identity
from pilothouse.controllers.statefulset.claim_control import ClaimsFailed, StatefulClaims, Wrote
from pilothouse.machinery.errors import AlreadyExists, Conflict, NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_TRIES = 4


class StatefulPods:
    """Writes pods of StatefulSets. Every writing method raises StatusError or ClaimsFailed."""

    def __init__(self, client: Client, claims: StatefulClaims, recorder: EventRecorder, wrote: Wrote) -> None:
        self._pods = client.for_resource(PODS)
        self._recorder = recorder
        self._wrote = wrote
        self.claims = claims

    async def create(self, stateful_set: Json, pod: Json) -> None:
        """Create the pod's claims, then the pod."""
        try:
            await self.claims.create(stateful_set, pod)
        except ClaimsFailed as error:
            self._tell("Create", stateful_set, pod, error)
            raise
        failure = await self._create(stateful_set, pod)
        if isinstance(failure, AlreadyExists):
            raise failure
        await self._own_claims(stateful_set, pod)
        self._tell("Create", stateful_set, pod, failure)
        if failure is not None:
            raise failure

    async def create_missing_claims(self, stateful_set: Json, pod: Json) -> None:
        await self.claims.create(stateful_set, pod)
        await self._own_claims(stateful_set, pod)

    async def delete(self, stateful_set: Json, pod: Json) -> None:
        """Delete the pod; a missing pod is ignored."""
        try:
            deleted = await self._pods.namespace(namespace_of(pod)).delete(name_of(pod))
            self._wrote(stateful_set, PODS, deleted)
        except NotFound:
            pass
        except StatusError as error:
            self._tell("Delete", stateful_set, pod, error)
            raise
        self._tell("Delete", stateful_set, pod)

    async def update(self, stateful_set: Json, pod: Json) -> None:
        """Restore the pod's identity and storage, and the owners of its claims."""
        pods = self._pods.namespace(namespace_of(pod))
        for tries_left in reversed(range(_TRIES)):
            changed = await self._mended(stateful_set, pod)
            if changed is None:
                return
            try:
                self._wrote(stateful_set, PODS, await pods.update(changed))
                self._tell("Update", stateful_set, pod)
                return
            except StatusError as error:
                if not isinstance(error, Conflict) or not tries_left:
                    self._tell("Update", stateful_set, pod, error)
                    raise
            pod = await pods.get(name_of(pod))

    async def _create(self, stateful_set: Json, pod: Json) -> StatusError | None:
        try:
            created = await self._pods.namespace(namespace_of(stateful_set)).create(pod)
        except StatusError as error:
            return error
        self._wrote(stateful_set, PODS, created)
        return None

    async def _own_claims(self, stateful_set: Json, pod: Json) -> None:
        try:
            await self.claims.own(stateful_set, pod)
        except ClaimsFailed as error:
            self._tell("Update", stateful_set, pod, error)
            raise

    async def _mended(self, stateful_set: Json, pod: Json) -> Json | None:
        """Return the corrected pod, after correcting its claims; None if nothing was wrong."""
        changed: Json = {**pod, "metadata": dict(metadata(pod)), "spec": dict(pod["spec"])}
        is_right = identity.identity_matches(stateful_set, pod)
        if not is_right:
            identity.set_identity(stateful_set, changed, identity.ordinal_of(pod))
        if not identity.storage_matches(stateful_set, changed):
            is_right = False
            changed["spec"]["volumes"] = identity.volumes_with_claims(stateful_set, changed)
            try:
                await self.claims.create(stateful_set, changed)
            except ClaimsFailed as error:
                self._tell("Update", stateful_set, changed, error)
                raise
        if not self.claims.are_owned(stateful_set, changed):
            is_right = False
            await self._own_claims(stateful_set, changed)
        return None if is_right else changed

    def _tell(self, verb: str, stateful_set: Json, pod: Json, error: Exception | None = None) -> None:
        about = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(stateful_set)}"
        if error is None:
            self._recorder.event(stateful_set, NORMAL, f"Successful{verb}", f"{about} successful")
        else:
            self._recorder.event(stateful_set, WARNING, f"Failed{verb}", f"{about} failed error: {error}")
