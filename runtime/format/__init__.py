"""The file format: containers, tables, their checks, bundles and vocabularies."""
