"""Media types: each serializer turns objects, lists and watch events into bytes. Endpoints never know which is used."""
