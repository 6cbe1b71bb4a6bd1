"""OpenAPI of custom resources: their routes and schemas, published as definitions come and go."""
