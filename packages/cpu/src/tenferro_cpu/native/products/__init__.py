"""Products of matrices: small ones in machine code, others through the best BLAS there is."""
