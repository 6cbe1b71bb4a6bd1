"""Discovery of everything in one document: the groups of the three servers and of those behind APIServices."""
