"""What names, labels, metadata and request options must look like, in upstream's words and order."""
