"""The keys that all servers of one cluster must have: where they are kept, how a server gets them, how they change."""
