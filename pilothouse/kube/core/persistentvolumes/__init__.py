"""PersistentVolumes: storage with a life cycle independent of pods."""
