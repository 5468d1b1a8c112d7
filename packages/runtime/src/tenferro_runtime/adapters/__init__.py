"""Adapters for libraries with their own conventions or lists of array libraries, one module for each.

Importing a module registers tenferro with the library.
"""
