from pilothouse.testing.answer import Answer as Answer
from pilothouse.testing.api import API as API
from pilothouse.testing.api import BlockingAPI as BlockingAPI
from pilothouse.testing.errors import StartError as StartError
from pilothouse.testing.in_loop import server as server
from pilothouse.testing.in_thread import Server as Server
