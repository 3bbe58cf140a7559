"""Tests of the pictures; a package, so that its fixtures have a module of their own."""
