"""The figures of `pilothouse top`, read from the metrics of a server."""
