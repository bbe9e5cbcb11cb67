"""The hooks of coding agents; `answer.py` maps each moment to its function."""
