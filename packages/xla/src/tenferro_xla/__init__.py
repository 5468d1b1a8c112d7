"""Programs lowered to StableHLO and run by XLA."""
