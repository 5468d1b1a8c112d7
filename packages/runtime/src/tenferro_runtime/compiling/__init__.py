"""`trace`, `compile` and what lies between a call of a user's function and its program."""
