"""The front end of CEL: lexer, parser, macros and type checker, with cel-go's limits and messages."""
