"""The members of a portfolio: how they are grown, raced and weighed."""
