"""The pushdown automaton: grammars as nondeterministic automata that are made deterministic."""
