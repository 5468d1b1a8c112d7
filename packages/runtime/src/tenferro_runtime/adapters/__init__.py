"""What libraries must be told that keep conventions or lists of array libraries of their own, one module for each.

Importing a module registers with its library, by the door that the library has for it.
"""
