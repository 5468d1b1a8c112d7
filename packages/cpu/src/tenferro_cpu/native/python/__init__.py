"""The C interface of CPython and NumPy as machine code sees it: symbols, layouts of objects, built-in functions."""
