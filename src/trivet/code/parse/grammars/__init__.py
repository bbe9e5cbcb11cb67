"""Grammars: which node of which language's syntax tree defines a name, by family of languages."""
