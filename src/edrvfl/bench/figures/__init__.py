"""Draw the study's figures: a table goes in, a matplotlib `Figure` comes out.

A figure is at most `look.WIDEST` inches wide and has no letters below `look.SMALLEST` points, so that nothing
is below ten pixels on a page of 1016.
"""
