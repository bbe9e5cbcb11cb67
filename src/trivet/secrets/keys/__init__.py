"""The keys that secrets are sealed with: where they are kept, made and rotated."""

from trivet.secrets.keys.ring import Key, KeyRing, places_of

__all__ = ["Key", "KeyRing", "places_of"]
