"""Programs as data: equations, their law, their sizes, and a program as an operation."""
