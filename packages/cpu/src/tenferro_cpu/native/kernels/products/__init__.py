"""Matrix products: small ones by C kernels, others through the best available BLAS."""
