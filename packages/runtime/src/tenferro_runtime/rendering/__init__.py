"""Programs as straight-line Python over kernels, and how faster kernels take their places."""
