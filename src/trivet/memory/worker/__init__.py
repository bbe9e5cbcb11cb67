"""Work that no caller waits for: embedding, extraction of concepts, counting what recall showed."""
