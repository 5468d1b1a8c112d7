"""Recording: values that stand for variables, and the builder that writes down what is done with them."""
