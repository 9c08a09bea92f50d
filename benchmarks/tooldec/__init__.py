"""ToolDec's claims (Zhang et al. 2023, arXiv 2310.07075) with a small model: see docs/research.md and __main__.py."""
