"""Background work that no caller waits for: embedding, concept extraction and usage counts."""
