"""Adapters: one thin file per decoding library. Each imports its library only when used."""
