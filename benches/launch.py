#!/usr/bin/env python3
"""Measures starts of programs by copysim and by hyperfine, in alternation: python3 benches/launch.py [--rounds 15] [--copysim FILE]

The peer is hyperfine (https://github.com/sharkdp/hyperfine), which is what people use for this: `hyperfine --shell=none --runs 1 --prepare 'sync; echo 3 >
/proc/sys/vm/drop_caches' COMMAND` for a cold start, the same with one start before in place of the drop for a warm one. copysim waits until the drive has been idle
for 200 ms, in which processors fall asleep too, which a small program feels: so hyperfine's preparation ends with a sleep of 200 ms. A round makes one start by copysim, one by hyperfine, and one more by hyperfine, the control; every second round goes backwards. Both time one start of the same command from before it
is forked until it has ended.

Said to be the same: where the ratio of the medians lies within the run-to-run spread of hyperfine against itself, which is the ratio of the ends of the
middle four fifths of all its starts. The geometric mean of the paired ratios and its 95 % interval stand beside it, and those of the control.

It needs root (to drop caches) and hyperfine on PATH.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import peers

COMMANDS = [["git", "--version"], ["python3", "-c", "import json"], ["cargo", "--version"]]
PATIENCE_S = 300
# Without a shell of its own hyperfine needs one for this.
DROP = "sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches; sleep 0.2'"
REST = "sleep 0.2"


def by_copysim(copysim, place, command, cold):
    record = place / "record.json"
    cache = "cold" if cold else "warm"
    line = [copysim, "launch", "--runs", "1", "--cache", cache, "--settle", "200ms", "--quiet", "--results", place / "results", "--json", record, "--", *command]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # One drive is measured once at a time.
        if "another copysim is" not in done.stderr or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    if done.returncode != 0:
        raise peers.Refused(f"{' '.join(map(str, line))} ended with {done.returncode}: {done.stderr.strip()}")
    (run,) = json.loads(record.read_text())["runs"]
    return run["phases"][0]["launch"]["ready_ns"] / 1e9


def by_hyperfine(place, command, cold):
    result = place / "hyperfine.json"
    how = ["--prepare", DROP] if cold else ["--warmup", "1", "--prepare", REST]
    words = " ".join(word if word.replace("-", "").isalnum() else f"'{word}'" for word in command)
    line = ["hyperfine", "--shell=none", "--runs", "1", *how, "--style", "none", "--export-json", result, words]
    done = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise peers.Refused(f"{' '.join(map(str, line))} ended with {done.returncode}: {done.stderr.strip()}")
    (found,) = json.loads(result.read_text())["results"]
    return found["times"][0]


def spread(values):
    """The ends of the middle four fifths, as a ratio."""
    ordered = sorted(values)
    cut = len(ordered) // 10
    kept = ordered[cut : len(ordered) - cut]
    return kept[-1] / kept[0]


def compare(options, place, command, cold):
    ours, peer, control = [], [], []
    steps = [
        (ours, lambda: by_copysim(options.copysim, place, command, cold)),
        (peer, lambda: by_hyperfine(place, command, cold)),
        (control, lambda: by_hyperfine(place, command, cold)),
    ]
    for number in range(options.rounds):
        for times, step in steps if number % 2 == 0 else reversed(steps):
            times.append(step())
    medians = [statistics.median(times) for times in (ours, peer + control)]
    allowed = spread(peer + control)
    off = medians[0] / medians[1]
    paired, against_itself = peers.ratio(ours, peer), peers.ratio(control, peer)
    return {
        "command": " ".join(command),
        "cache": "cold" if cold else "warm",
        "copysim_median_s": medians[0],
        "hyperfine_median_s": medians[1],
        "ratio_of_medians": off,
        "spread_of_hyperfine": allowed,
        "paired": paired,
        "control": against_itself,
        "same": 1 / allowed <= off <= allowed,
        "copysim_s": ours,
        "hyperfine_s": peer,
        "hyperfine_control_s": control,
    }


def line(found):
    def interval(ratio):
        return f"{ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"

    return (
        f"{found['command']}, {found['cache']}: copysim {found['copysim_median_s'] * 1e3:.2f} ms, hyperfine {found['hyperfine_median_s'] * 1e3:.2f} ms; "
        f"ratio of medians {found['ratio_of_medians']:.3f}, spread of hyperfine {found['spread_of_hyperfine']:.3f}: "
        f"{'the same' if found['same'] else 'NOT the same'}; pairs {interval(found['paired'])}, control {interval(found['control'])}"
    )


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--copysim", type=pathlib.Path, default=root / "target" / "release" / "copysim")
    parser.add_argument("--only", default="", help="commands that begin with this")
    parser.add_argument("--json", type=pathlib.Path, help="all figures go here")
    options = parser.parse_args()
    try:
        if os.geteuid() != 0:
            raise peers.Refused("only root can drop caches")
        if not shutil.which("hyperfine"):
            raise peers.Refused("hyperfine is not on PATH (a package of most distributions, or cargo install hyperfine)")
        if options.rounds < 2:
            raise peers.Refused("two rounds are the least that can be compared")
        found = []
        with tempfile.TemporaryDirectory() as place:
            for command in COMMANDS:
                if not " ".join(command).startswith(options.only):
                    continue
                if not shutil.which(command[0]):
                    print(f"{command[0]} is not on PATH: left out")
                    continue
                for cold in (True, False):
                    found.append(compare(options, pathlib.Path(place), command, cold))
                    print(line(found[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1))
        return 0 if all(one["same"] for one in found) else 1
    except peers.Refused as refused:
        print(f"launch.py: {refused}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
