"""Array functions that need programs or a family: roots of polynomials, divisors, functions applied slice by slice."""
