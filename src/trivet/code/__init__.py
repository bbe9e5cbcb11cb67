"""Search in source code: chunks by syntax, symbols, words and vectors of a tree, in an index of its own."""
