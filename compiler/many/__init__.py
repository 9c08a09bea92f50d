"""Compiling many specs for many tokenizers into a store: one job at a time (job.py), on the cores of this machine
(pool.py) or of a Ray cluster (cluster.py)."""
