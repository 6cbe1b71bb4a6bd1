"""OpenAPI: the v2 document of the whole server and one v3 document per group version, made when first asked for."""
