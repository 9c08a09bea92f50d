"""Automaton and vocabulary to the tables of a bundle."""
