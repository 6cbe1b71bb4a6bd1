"""The extensions server: CustomResourceDefinitions and custom resources."""
