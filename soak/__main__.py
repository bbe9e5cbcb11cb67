"""Put stores under every known fault and check the invariants after each.

A whole campaign has a thousand rounds of eight killed writers, and the other faults in proportion;
it takes hours. The seed decides the order and each choice, but not when exactly a signal strikes.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from random import Random

from soak import alone
from soak.campaign import Campaign
from soak.injectors import NAMES, injectors
from soak.plan import WHOLE, plan
from soak.report import write


def main() -> int:
    given = _options()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("ended")
    )  # Let writers end and disks unmount.
    chosen = {name: one for name, one in injectors().items() if given.only in (None, name)}
    until = time.monotonic() + given.seconds if given.seconds else None
    share = min(1.0, given.rounds / WHOLE)
    campaign = Campaign(chosen, given.writers, max(5.0, 60 * share), until)
    started = time.monotonic()
    scenarios: dict[str, alone.Outcome] = {}
    for _ in campaign.run(plan(chosen.values(), given.rounds, Random(given.seed))):
        write(given, campaign, scenarios, time.monotonic() - started)
    for name, scenario in alone.SCENARIOS.items():
        if given.only in (None, name) and not campaign.over:
            scenarios[name] = scenario(given.seed, share)
    failed = write(given, campaign, scenarios, time.monotonic() - started)
    print(
        f"{'VIOLATED' if failed else 'All held'} after {time.monotonic() - started:.0f} s, seed "
        f"{given.seed}."
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=1, help="what the order and the choices follow from (1)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=WHOLE,
        help=f"rounds of killed writers, the others in proportion ({WHOLE})",
    )
    parser.add_argument("--seconds", type=float, help="end after this many seconds")
    parser.add_argument(
        "--writers", type=int, default=8, help="writers that are killed in a round (8)"
    )
    parser.add_argument(
        "--only", choices=(*NAMES, *alone.SCENARIOS), help="only this fault or scenario"
    )
    parser.add_argument(
        "--output", type=Path, help="write the result to this JSON file, and a page next to it"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
