"""Compiling by parts: what is bracketed off and depends on nothing around it is compiled once, kept, and linked.

split.py     which rules of a grammar are parts of their own, and the grammars of main and parts
definitions.py   which large objects inside of arguments are parts, too
canonical.py   an order of rules that recur, which does not depend on where they stand
digests.py   by what equal grammars are known
stubs.py     where an automaton calls them
symbol_classes.py   which symbols are told apart
part.py      one part: automaton, tables, and what others need to know of it
vocab_queries.py     what linking asks of a vocabulary
walk.py      kernels: walks through the tables of joined parts
row_hashes.py      by what equal rows of different parts are known
numbering.py    parts side by side in one numbering
resolve.py   the rows of a part that look into those it calls
tables.py    joined parts → the tables of a bundle
workers.py   processes that make parts
cache.py     parts by content, in memory and on disk
link.py      all of it: grammar → tables, or None where the grammar has to be compiled as a whole
"""
