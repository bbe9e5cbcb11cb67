"""From a question to ranked chunks: the legs, their fusion, what has to do with a place."""
