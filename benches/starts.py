#!/usr/bin/env python3
"""Starts of programs on a slow and on a far drive: python3 benches/starts.py [--runs 3] [--only NAME,…] [--parts starts,suite,between,player]

Two drives of the laboratory: one like the eMMC of a cheap notebook (40 MB/s, 0.15 ms a request) and one like a hard disk (130 MB/s, 10 ms). Each serves one request
after another.

  starts    each cold start of app-load-* at full scale, against what the drive's requests come to: requests × delay + bytes ÷ rate + the time for thinking.
            Promised: within 25 %.
  suite     user-experience and a copy of a large file on both: the eMMC shall be the better one to live with, the hard disk the faster one to copy on.
  between   drives of 130 MB/s whose delay lies between: at which delay does a browser start as fast as from the eMMC? Predicted from the requests of a start
            on the hard disk, then found between drives around it.
  player    what a start costs that finds all in memory, without its thinking: at most 3 % of the cold one from the hard disk, and at least 80 % of that in
            the kernel.

It needs root, e2fsprogs, 16 GB of free memory and the example lab-drive (cargo build --release --example lab-drive). Nothing else should run: the drives of the
laboratory need a processor at the right moment. It writes to one new directory below --dir, and takes down what it set up, also on Ctrl-C.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STARTS = ["browser", "office-suite", "photo-editor", "ide", "game"]
MB = 1_000_000
OFF = 0.25
PLAYER, IN_KERNEL = 0.03, 0.8
# Rate in bytes per second, delay of a request in microseconds.
EMMC, HARD_DISK = (40 * MB, 150), (130 * MB, 10_000)


class Refused(Exception):
    """What the user has to put right."""


class Lab:
    """A drive whose rate and delay are ordered: without limits while things are made ready."""

    def __init__(self, options, place):
        self.options, self.place = options, place
        mount = place / "mount"
        mount.mkdir()
        self.mount = mount
        command = [options.lab, "--size", "14GB", "--rate", 100_000 * MB, "--fs", "ext4", "--mount", mount]
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise Refused("the laboratory's drive did not start: is this root?")

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def be(self, drive):
        rate, delay = drive or (100_000 * MB, 0)
        self.order(f"rate {rate}")
        self.order(f"delay {delay}us")

    def run(self, drive, scenario, *more, runs=None):
        """Carries a scenario out, on this kind of drive from the first window on; its record."""
        results = pathlib.Path(tempfile.mkdtemp(dir=self.place))
        runs = runs or self.options.runs
        command = [self.options.copysim, "scenario", scenario, self.mount, "--runs", runs, "--yes", "--settle", "1s", "--results", results, *more]
        self.be(None)
        copysim = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in copysim.stderr:
            said.append(line)
            if drive and "waiting until the drive has been idle" in line:
                self.be(drive)
                drive = None
        if copysim.wait() != 0:
            raise Refused(f"{' '.join(map(str, command))} ended with {copysim.returncode}: {''.join(said[-5:])}")
        self.be(None)
        (record,) = results.glob("*.json")
        return json.loads(record.read_text())

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()


@contextlib.contextmanager
def lab(options):
    with tempfile.TemporaryDirectory(dir=options.dir, ignore_cleanup_errors=True) as place:
        drive = Lab(options, pathlib.Path(place))
        try:
            yield drive
        finally:
            drive.close()


def only_first(name, place, phases_kept=1):
    """A scenario file with the first phases of a program alone: its cold start, and its second."""
    phases = re.split(r"(?=^\[\[phase\]\])", (ROOT / "scenarios" / f"app-load-{name}.toml").read_text(), flags=re.M)
    # What follows the last one belongs to the file as a whole.
    kept = [part if index <= phases_kept else re.sub(r"^\[\[phase\]\]\n(?:.+\n)*", "", part) for index, part in enumerate(phases)]
    file = place / f"{name}.toml"
    file.write_text("".join(kept))
    return file


def named(record, name):
    return [phase for run in record["runs"] for phase in run["phases"] if phase["name"] == name]


def cold_phases(record):
    return named(record, "cold start")


def requests(phase):
    """Requests, bytes and thinking of a start, by what the drive counted."""
    counted = phase["device"]["d0"]
    return counted["reads"] + counted["writes"] + (counted["flushes"] or 0), counted["read_bytes"] + counted["written_bytes"], phase["launch"]["shape"]["think_ns"] / 1e9


def predicted(asked, drive):
    count, moved, thinking = asked
    rate, delay = drive
    return count * delay / 1e6 + moved / rate + thinking


def ready(phase):
    return phase["launch"]["ready_ns"] / 1e9


def starts(options):
    good = True
    print("\n## Starts\n\n| start | drive | requests | bytes | thinking | predicted | measured | ratio |\n|---|---|---|---|---|---|---|---|")
    for name in options.only:
        with lab(options) as drive:
            for kind, is_ in [("eMMC", EMMC), ("hard disk", HARD_DISK)]:
                cold = cold_phases(drive.run(is_, only_first(name, drive.place), "--no-verify"))
                ratios = [ready(phase) / predicted(requests(phase), is_) for phase in cold]
                count, moved, thinking = requests(cold[0])
                took, should = statistics.median(map(ready, cold)), predicted(requests(cold[0]), is_)
                ratio = statistics.median(ratios)
                good &= abs(ratio - 1) <= OFF
                print(f"| {name} | {kind} | {count:,} | {moved / MB:.1f} MB | {thinking:.2f} s | {should:.2f} s | {took:.2f} s | {ratio:.3f} |", flush=True)
    return good


def suite(options):
    total, copied = {}, {}
    parts = {}
    for kind, is_ in [("eMMC", EMMC), ("hard disk", HARD_DISK)]:
        with lab(options) as drive:
            record = drive.run(is_, "user-experience", "--scale", options.suite_scale, runs=1)
            launched = [phase for phase in record["runs"][0]["phases"] if phase.get("launch") and phase["status"] == "ok"]
            parts[kind] = [(phase["corpus"], phase["name"], ready(phase)) for phase in launched]
            total[kind] = sum(time for *_, time in parts[kind])
            copy = drive.run(is_, "large-file-same-drive", "--scale", "10%", "--no-verify", runs=1)["runs"][0]["phases"][0]
            copied[kind] = copy["bytes"] * 1e9 / copy["window"]["durable_ns"] / MB
            corpora = [corpus["name"] for corpus in record["corpora"]]
    print("\n## What a person feels, and a copy\n\n| part | eMMC | hard disk |\n|---|---|---|")
    for (corpus, name, emmc), (*_, disk) in zip(parts["eMMC"], parts["hard disk"], strict=True):
        print(f"| {corpora[corpus]}, {name} | {emmc:.2f} s | {disk:.2f} s |")
    print(f"| all | {total['eMMC']:.1f} s | {total['hard disk']:.1f} s |\n| copying a large file | {copied['eMMC']:.1f} MB/s | {copied['hard disk']:.1f} MB/s |", flush=True)
    return total["eMMC"] < total["hard disk"] and copied["eMMC"] < copied["hard disk"]


def between(options):
    with lab(options) as drive:
        measure = lambda is_: cold_phases(drive.run(is_, only_first("browser", drive.place), "--no-verify"))
        emmc, far = measure(EMMC), measure(HARD_DISK)
        count, moved, thinking = requests(far[0])
        rate = HARD_DISK[0]
        delay = (predicted(requests(emmc[0]), EMMC) - moved / rate - thinking) / count * 1e6
        wanted = statistics.median(map(ready, emmc))
        points = [(factor * delay, statistics.median(map(ready, measure((rate, round(factor * delay)))))) for factor in (0.7, 1, 1.3)]
    # A straight line through the three.
    slope, start = statistics.linear_regression(*zip(*points))
    found = (wanted - start) / slope
    print(f"\n## The drive between\n\nFrom the eMMC a browser starts in {wanted:.3f} s. A drive of 130 MB/s does as well with a delay of {delay / 1000:.3f} ms as predicted, and of {found / 1000:.3f} ms as found ({found / delay:.3f}):\n")
    print("| delay | start |\n|---|---|")
    for at, time in points:
        print(f"| {at / 1000:.3f} ms | {time:.3f} s |")
    return abs(found / delay - 1) <= OFF


def player(options):
    good = True
    print("\n## The player itself\n\n| start | cold | from memory, without thinking | of the cold | in the kernel |\n|---|---|---|---|---|")
    for name in options.only:
        with lab(options) as drive:
            record = drive.run(HARD_DISK, only_first(name, drive.place, 2), "--no-verify")
        cold = statistics.median(map(ready, cold_phases(record)))
        found = []
        for phase in named(record, "second start"):
            launch = phase["launch"]
            # Thinking keeps a processor busy in user mode.
            thinking = launch["shape"]["think_ns"]
            user, system = launch["user_ns"] - thinking, launch["system_ns"]
            found.append(((launch["ready_ns"] - thinking) / 1e9, system / (system + max(user, 0))))
        memory, kernel = (statistics.median(values) for values in zip(*found))
        good &= memory <= PLAYER * cold and kernel >= IN_KERNEL
        print(f"| {name} | {cold:.2f} s | {memory:.3f} s | {memory * 100 / cold:.2f} % | {kernel * 100:.0f} % |", flush=True)
    return good


PARTS = {"starts": starts, "suite": suite, "between": between, "player": player}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each start [3]")
    parser.add_argument("--only", default=",".join(STARTS), help=f"of {', '.join(STARTS)}")
    parser.add_argument("--suite-scale", default="100%", help="scale of user-experience [100%%]: whole it takes the hard disk half an hour")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="where records lie")
    parser.add_argument("--lab", type=pathlib.Path, default=ROOT / "target/release/examples/lab-drive", help="the example lab-drive")
    parser.add_argument("--copysim", type=pathlib.Path, default=ROOT / "target/release/copysim", help="the program to look at")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if os.geteuid() != 0:
        raise Refused("run this as root")
    good = [PARTS[part](options) for part in options.parts.split(",")]
    print("\nAll as promised." if all(good) else "\nNot all is as promised.")
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as why:
        sys.exit(f"starts.py: {why}")
