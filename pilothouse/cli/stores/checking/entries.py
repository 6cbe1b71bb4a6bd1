"""What must hold of every entry of a store, and of all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pilothouse.apiserver.storage.backup.model import SavedEntry
from pilothouse.apiserver.storage.errors import TransformFailed, Undecodable
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.cli.diagnosis.findings import Finding, failed, note
from pilothouse.cli.stores.checking.agreement import Agreement
from pilothouse.cli.stores.checking.values import Encrypted, ValueReader
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.wire_facts import message_of

_NO_OBJECTS = ("/ranges/", "/masterleases/", "/peerserverleases/")
"""Keys behind the prefix under which servers keep what is no object of the API."""
_SEALED = "/pilothouse.dev/"
"""Where servers of ours keep what they alone can open."""
_FROM_BACKUP = "restore a backup (`pilothouse restore` into an empty store), or delete the key"


class EntryChecks:
    """Takes each entry once, then says what holds of all."""

    def __init__(self, reader: ValueReader, *, prefix: str, revision: Revision) -> None:
        self._reader = reader
        self._prefix, self._revision = prefix, revision
        self._keys: set[str] = set()
        self._uids: dict[str, str] = {}
        self._agreement = Agreement()
        self._encrypted: Counter[str] = Counter()
        self.places: dict[tuple[str, str], str] = {}
        """Where the objects of a group and kind live, behind the prefix."""

    @property
    def seen(self) -> int:
        """How many keys there were."""
        return len(self._keys)

    async def take(self, entry: SavedEntry) -> list[Finding]:
        """What is wrong with the entry."""
        found = list(self._revisions(entry))
        self._keys.add(entry.key)
        if entry.key.startswith(self._prefix + _SEALED):
            return found
        try:
            obj = await self._reader.object(entry)
        except Encrypted:
            self._encrypted[entry.key.split("/")[2]] += 1
            return found
        except TransformFailed as error:
            advice = "add the key that encrypted the value to --encryption-provider-config"
            return [*found, failed("encryption", f"{entry.key}: cannot be decrypted: {error}", advice)]
        except Undecodable as error:
            return [*found, failed("value", f"{entry.key}: cannot be decoded: {error}", _FROM_BACKUP)]
        if entry.key.startswith(tuple(self._prefix + each for each in _NO_OBJECTS)):
            self._agreement.add_own_state(entry.key, obj)
            return found
        return [*found, *self._object(entry, obj)]

    def at_the_end(self) -> Iterator[Finding]:
        """What is wrong with all of them together."""
        yield from self._agreement.findings()
        for resource, count in self._encrypted.items():
            text = f"{count} values of {resource} are encrypted and were skipped"
            yield note("encryption", text, "name the configuration with --encryption-provider-config")

    def _revisions(self, entry: SavedEntry) -> Iterator[Finding]:
        if not 0 < entry.created <= entry.modified <= self._revision:
            text = f"created at {entry.created}, modified at {entry.modified}, in a store at {self._revision}"
            advice = "back up the store and restore it: every key gets a new revision"
            yield failed("revision", f"{entry.key}: {text}", advice)
        if entry.key in self._keys:
            yield failed("key", f"{entry.key}: exists twice", _FROM_BACKUP)

    def _object(self, entry: SavedEntry, obj: Json) -> Iterator[Finding]:
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(obj.get("metadata"), dict) or not _is_version(api_version):
            yield failed(
                "value", f"{entry.key}: the value is not an object with kind, apiVersion and metadata", _FROM_BACKUP
            )
            return
        version = GroupVersion.parse(obj["apiVersion"])
        self._agreement.add(entry.key, obj, built_in=message_of(version.kind(kind)) is not None)
        path = "/".join(filter(None, (namespace_of(obj), name_of(obj))))
        if entry.key.endswith(f"/{path}"):
            self.places[version.group, kind] = entry.key.removesuffix(path).removeprefix(self._prefix)
        else:
            yield failed("key", f"{entry.key}: holds the {kind} {path}, which belongs under another key", _FROM_BACKUP)
        key = entry.key
        uid = str(metadata(obj).get("uid") or "")
        if not uid:
            yield failed("uid", f"{key}: has no uid", _FROM_BACKUP)
        elif (other := self._uids.setdefault(uid, key)) != key:
            yield failed("uid", f"{key}: has the uid of {other}", "delete one of the two objects and create it again")


def _is_version(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(GroupVersion.parse(text).version)
    except ValueError:
        return False
