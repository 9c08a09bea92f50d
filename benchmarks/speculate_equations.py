"""Draw the paper's figure 3: the speed-up of the client side over the time of the tool, by equation 1.

    python -m benchmarks.speculate_equations [--out docs/speculate]

Writes speedup.svg, for shares of right guesses and times of the guess, with G = 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from toolc.runtime.speculate.chart import draw
from toolc.runtime.speculate.equations import ClientSide

POINTS = 90
LONGEST = 3.0  # T / G
SETTINGS = ((1.0, 0.0), (1.0, 0.25), (1.0, 0.5), (0.8, 0.25), (0.5, 0.25), (0.2, 0.25))  # α, g / G


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/speculate"))
    options = parser.parse_args()
    times = [LONGEST * n / POINTS for n in range(POINTS + 1)]
    curves = {
        f"α = {hits:g}, g = {guess:g} G": [(tool, ClientSide(1.0, guess, tool, hits).speedup) for tool in times]
        for hits, guess in SETTINGS
    }
    path = options.out / "speedup.svg"
    path.write_text(draw("Speed-up by guessing calls, T_standard / T_spec", "T / G", "speed-up", curves))
    print(path)


if __name__ == "__main__":
    main()
