"""The v2 document as gnostic's protobuf messages (openapi.v2.Document), which is how client-go asks for it."""
