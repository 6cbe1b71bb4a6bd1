"""The same load on any API server, and the figures side by side."""
