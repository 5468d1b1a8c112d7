"""Adapters between tenferro and other libraries, one module each, which imports the library."""
