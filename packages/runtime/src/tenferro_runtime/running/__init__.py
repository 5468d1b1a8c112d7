"""Programs on values: rendered for concrete ones, replayed op by op for others."""
