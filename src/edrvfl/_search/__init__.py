"""Many networks at once: what is tried (space), who shares (plan), run, metrics, results."""
