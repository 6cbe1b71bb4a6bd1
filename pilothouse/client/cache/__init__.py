"""A local, eventually consistent copy of a collection: reflector → DeltaFIFO → indexer → handlers."""
