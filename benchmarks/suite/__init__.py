"""One suite of small benchmarks: rows by group, instruction counts as a gate, wall times beside the peers, a history.

`python3 dev bench` runs it; docs/benchmarks.md shows the results.
"""
