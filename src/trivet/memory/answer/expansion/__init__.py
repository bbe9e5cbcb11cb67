"""Other ways to ask: parts of a question by rule, or rewrites by a language model."""
