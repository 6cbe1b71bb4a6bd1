"""/debug/pprof: where the server spends its time and what it is doing now, in the format that `go tool pprof` reads."""
