"""The test bench as API objects: testing.pilothouse.dev, which a server with --testing serves in its own process."""
