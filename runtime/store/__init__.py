"""Stores: folders, buckets and repositories that hold bundles under their keys, beside the vocab files they need.

    <store>/<key>.toolc            a bundle, without its vocab
    <store>/<digest>.vocab         a vocab; a bundle of the store can be opened where it lies
    <store>/<key>.<public>.sig     the signature of a bundle by one Ed25519 key (64 hexadecimal digits)

key.py: the key. files.py, folder.py, remote.py: what holds the files. signing.py: signatures. store.py: the store.
fetch.py: `load`.
"""
