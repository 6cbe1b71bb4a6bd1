"""/debug/pprof: profiles of a running server, in the format of `go tool pprof`."""
