"""Tables that users write to."""
