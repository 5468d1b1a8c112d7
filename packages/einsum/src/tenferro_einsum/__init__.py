"""N-ary einsum, differentiable, with planned contraction orders."""
