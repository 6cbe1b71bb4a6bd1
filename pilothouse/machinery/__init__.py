"""Foundation of all packages: names, objects, errors, selectors, codecs, schemas and patches. No I/O."""
