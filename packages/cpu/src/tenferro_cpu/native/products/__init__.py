"""Products of matrices: small ones by C kernels, others through the best BLAS there is."""
