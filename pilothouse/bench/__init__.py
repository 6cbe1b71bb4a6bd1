"""The test bench as API objects: the group testing.pilothouse.dev of a server with --testing."""
