"""Passing requests on to other servers: connections that are kept, answers that are streamed, upgrades."""
