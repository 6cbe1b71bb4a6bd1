"""From command line to running server: options → complete → validate → config → chain → prepare → run."""
