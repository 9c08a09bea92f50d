"""Do in one pass of a numba kernel what the folder above does in plain passes: check, pack and unpack tables."""
