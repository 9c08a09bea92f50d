"""Read calls of tools from text or tokens, and write them."""
