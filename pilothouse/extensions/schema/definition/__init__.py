"""What a schema may say: the rules for the schemas of CustomResourceDefinitions."""
