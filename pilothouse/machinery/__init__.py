"""The foundation of every other part: names, objects, errors, selectors, codecs, schemas and patches. No I/O at all."""
