"""The pool that large arrays live in."""
