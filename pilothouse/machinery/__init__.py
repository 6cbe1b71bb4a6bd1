"""What every other part stands on: names, objects, errors, selectors, codecs, schemas and patches. No I/O at all."""
