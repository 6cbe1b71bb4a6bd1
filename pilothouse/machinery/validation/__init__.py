"""The rules for names, labels, metadata and request options, in upstream's words and order."""
