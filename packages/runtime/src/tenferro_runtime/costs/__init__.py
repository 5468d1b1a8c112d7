"""What steps compute and move, and whose memory their results hold; for reports, and for who places steps."""

from tenferro_runtime.costs import _bodies as _bodies  # says what calls, branches and loops cost
