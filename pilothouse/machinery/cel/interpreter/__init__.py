"""An interpreter of checked expressions, on plain JSON: it counts what an evaluation costs and can be stopped.

The compiler's own runtime can do neither, and knows no value that it did not make itself."""
