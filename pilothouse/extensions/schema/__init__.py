"""The schemas of custom resources: what they may say, and what they do to objects. No I/O."""
