"""Select some of a bundle's tools: its rows and shortest completions are computed anew, nothing is compiled."""
