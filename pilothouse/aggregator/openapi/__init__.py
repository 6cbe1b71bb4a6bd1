"""OpenAPI of everything: the documents of the three servers and of those behind APIServices."""
