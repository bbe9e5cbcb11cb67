"""Source code search: chunks, symbols, words and vectors of a tree, in an index of its own."""
