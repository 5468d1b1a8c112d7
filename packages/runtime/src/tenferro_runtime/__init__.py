"""The array namespace, tracing, programs and executors."""
