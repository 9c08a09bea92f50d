"""Grammar to deterministic pushdown automaton."""
