"""From fused candidates to the hits a caller sees."""
