"""What a CustomResourceDefinition may say, by topic."""
