"""Local, eventually consistent copy of a collection: reflector → DeltaFIFO → indexer → event handlers."""
