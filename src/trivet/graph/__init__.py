"""The concept graph: extraction of concepts, the network of memories, and walks through it."""
