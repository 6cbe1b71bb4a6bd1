"""OpenAPI documents as gnostic's protobuf messages (openapi.v2.Document, openapi.v3.Document), for client-go."""
