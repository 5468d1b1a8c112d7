"""Dtypes, symbolic dimensions, layouts, host adapters and errors: the ground that every tenferro package stands on."""
