"""Native forms of the element-wise primitives, and the elementary functions behind them with bounds on their errors."""
