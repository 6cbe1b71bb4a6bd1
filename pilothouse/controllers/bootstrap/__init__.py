"""Bootstrap tokens: nodes that join trust a cluster by one, and are trusted by it."""
