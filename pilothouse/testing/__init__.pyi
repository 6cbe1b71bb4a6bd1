from pilothouse.apiserver.storage.snapshots import StoredSnapshot as StoredSnapshot
from pilothouse.testing.access import Answer as Answer
from pilothouse.testing.api import API as API
from pilothouse.testing.api import BlockingAPI as BlockingAPI
from pilothouse.testing.in_thread import Server as Server
from pilothouse.testing.running import StartError as StartError
from pilothouse.testing.running import server as server
