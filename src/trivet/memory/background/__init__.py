"""Work that no caller waits for: embedding, reading for concepts, counting what was shown."""
