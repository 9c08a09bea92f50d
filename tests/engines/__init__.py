"""Tests against real engines and a small trained model: `make engines` makes their environment and runs them."""
