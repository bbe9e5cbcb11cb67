"""Small helpers that every part uses; nothing here knows memories."""
