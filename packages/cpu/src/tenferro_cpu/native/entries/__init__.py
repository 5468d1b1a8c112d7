"""Entries of eager calls, of recording and of sweeps: from Python into machine code and back."""
