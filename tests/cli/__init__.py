"""Tests of the commands; a package, so that its fixtures have a module of their own."""
