"""The CUDA and ROCm backend on CuPy; importable without CuPy."""
