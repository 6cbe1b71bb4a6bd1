"""CEL as Kubernetes speaks it: which expressions compile, to which type, and what is wrong with the others.

The compiler is loaded when the first expression is compiled, not before."""
