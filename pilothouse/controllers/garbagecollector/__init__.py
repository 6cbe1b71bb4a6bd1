"""garbage-collector-controller: deletes objects whose owners are gone."""
