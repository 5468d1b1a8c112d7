"""What libraries need that take derivatives from a list of libraries, one module for each; it imports the library."""
