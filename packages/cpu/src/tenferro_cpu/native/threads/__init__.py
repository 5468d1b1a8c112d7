"""Who works on how many cores: the choice of BLAS and its threads, the arbiter of Python threads, the native team."""
