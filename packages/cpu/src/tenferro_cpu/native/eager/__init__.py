"""Entries of eager calls, of recording and of backward passes: from Python into machine code and back."""
