"""Projects of extension API servers: made file by file, run while they are written, and described."""
