"""What steps compute and move, and whose memory their results hold; for reports, and for who places steps."""
