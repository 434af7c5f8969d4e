#!/usr/bin/env python3
"""Looks at played starts from outside: python3 benches/app_load.py [SCENARIO …] [--scale 100%] [--dir DIR]

Shares no code with copysim. Each scenario's cold start is run once on an ext4 file system of its own under strace and the kernel's block events, and what is
seen is held against what its TOML states: number and bytes of reads and writes, sizes, shares at depth 1 and in sequence, the order of the steps; and every
page that was asked for must have been read from the device in the window, each exactly once.

It needs root, strace, e2fsprogs, tracefs. It writes to one new directory below --dir, and takes down what it set up, also on Ctrl-C.
"""

import argparse
import bisect
import collections
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACING = pathlib.Path("/sys/kernel/tracing")
PAGE = 4096
STARTS = ["browser", "game", "ide", "office-suite", "photo-editor"]
FS_IOC_FIEMAP = 0xC020660B


class Refused(Exception):
    """What the user has to put right."""


def run(*command, quiet=False, **more):
    """Runs a program; what it says is kept back where it is quiet, and shown when it fails."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    try:
        return subprocess.run([str(word) for word in command], check=True, text=True, **pipes, **more)
    except subprocess.CalledProcessError as why:
        raise Refused(f"{why}\n{why.stdout or ''}{why.stderr or ''}") from why


@contextlib.contextmanager
def drive(directory, size_gb):
    """An ext4 file system on a loop device past the cache."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        image, mount = pathlib.Path(place) / "image", pathlib.Path(place) / "mount"
        mount.mkdir()
        with open(image, "wb") as file:
            file.truncate(size_gb * 10**9 // PAGE * PAGE)
        device = run("losetup", "--find", "--show", "--direct-io=on", image, capture_output=True).stdout.strip()
        try:
            run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
            run("mount", device, mount)
            try:
                yield device, mount
            finally:
                run("umount", mount)
        finally:
            run("losetup", "-d", device)


@contextlib.contextmanager
def slow_drive(directory, size_gb, program, delay):
    """The same on a drive of the laboratory that takes its time for each request, so that what is asked for at once is seen to be."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        lab = subprocess.Popen(
            [program, "--size", f"{size_gb}GB", "--latency", delay, "--fs", "ext4", "--mount", place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            device = lab.stdout.readline().split()[0]
            yield device, pathlib.Path(place)
        finally:
            lab.send_signal(signal.SIGINT)
            lab.communicate()


class BlockEvents:
    """What a device is given, by the kernel's block events."""

    def __init__(self, device):
        mounted = (TRACING / "events").exists()
        if not mounted:
            run("mount", "-t", "tracefs", "tracefs", TRACING)
        self.unmount = not mounted
        self.instance = TRACING / "instances" / f"app-load-{os.getpid()}"
        self.instance.mkdir()
        number = os.stat(device).st_rdev
        (self.instance / "buffer_size_kb").write_text("40000")
        (self.instance / "trace_clock").write_text("mono")
        event = self.instance / "events/block/block_rq_issue"
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (event / "enable").write_text("1")

    def close(self):
        """The data reads: time in seconds of the monotonic clock, first byte, bytes."""
        (self.instance / "events/block/block_rq_issue/enable").write_text("0")
        text = (self.instance / "trace").read_text()
        self.instance.rmdir()
        if self.unmount:
            run("umount", "-l", TRACING)
        pattern = re.compile(r"\s(\d+\.\d+): block_rq_issue: \S+ (\S+) \d+ \(.*?\) (\d+) \+ (\d+)")
        found = [pattern.search(line) for line in text.splitlines()]
        # M marks what the file system reads of its own data.
        return [(float(m[1]), int(m[3]) * 512, int(m[4]) * 512) for m in found if m and m[2].startswith("R") and "M" not in m[2]]


def extents(path):
    """Where a file's data lie: (offset in the file, place on the device, bytes)."""
    with open(path, "rb") as file:
        count = 512
        head = struct.pack("=QQIIII", 0, 2**64 - 1, 1, 0, count, 0)
        buffer = bytearray(head + bytes(56 * count))
        fcntl.ioctl(file, FS_IOC_FIEMAP, buffer)
        mapped = struct.unpack_from("=I", buffer, 20)[0]
        return [struct.unpack_from("=QQQ", buffer, 32 + 56 * index) for index in range(mapped)]


# ---- what strace saw ----

CALL = re.compile(r"^(\d+) +(\d+\.\d+) (\w+)\((.*)\) += (.+) <(\d+\.\d+)>$")
UNFINISHED = re.compile(r"^(\d+) +(\d+\.\d+) (\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(\d+) +(\d+\.\d+) <\.\.\. (\w+) resumed>(.*)\) += (.+) <(\d+\.\d+)>$")


def calls(log):
    """Calls as (process, begin, end, name, arguments, answer), in the order in which they began."""
    open_calls, found = {}, []
    for line in open(log, errors="replace"):
        line = line.rstrip("\n")
        if m := CALL.match(line):
            found.append((m[1], float(m[2]), float(m[2]) + float(m[6]), m[3], m[4], m[5]))
        elif m := UNFINISHED.match(line):
            open_calls[m[1], m[3]] = (float(m[2]), m[4])
        elif (m := RESUMED.match(line)) and (m[1], m[3]) in open_calls:
            begin, arguments = open_calls.pop((m[1], m[3]))
            found.append((m[1], begin, begin + float(m[6]), m[3], arguments + m[4], m[5]))
    return sorted(found, key=lambda call: call[1])


Op = collections.namedtuple("Op", "thread begin end kind path offset bytes")


def operations(log):
    """Reads, faults and writes of a start, and its failed opens, after caches were dropped for the last time."""
    seen = calls(log)
    dropped = max((index for index, call in enumerate(seen) if call[3] == "write" and "drop_caches" in call[4]), default=None)
    if dropped is None:
        raise Refused("strace saw no caches dropped: is this root?")
    ops, misses, maps = [], 0, {}
    written = collections.Counter()
    for process, begin, end, name, arguments, answer in seen[dropped + 1 :]:
        path = (m := re.search(r"^\d+<([^>]*)>", arguments)) and m[1]
        if name == "openat" and ("/corpora/" in arguments or "/runs/" in arguments):
            misses += answer.startswith("-1 ENOENT")
            ops.append(Op(process, begin, end, "open", path, 0, 0))
        elif name == "pread64" and path and "/corpora/" in path and "/files/" in path:
            ops.append(Op(process, begin, end, "read", path, int(arguments.rsplit(", ", 1)[1]), int(answer.split()[0])))
        elif name == "mmap" and (m := re.search(r", \d+<([^>]*/corpora/[^>]*)>, 0", arguments)):
            maps[int(answer, 16)] = (m[1], int(arguments.split(", ")[1]))
        elif name == "munmap":
            maps.pop(int(arguments.split(", ")[0], 16), None)
        elif name == "madvise" and ("POPULATE_READ" in arguments or arguments.split(", ")[2].startswith("0x16")):
            address, length = (int(word, 0) for word in arguments.split(", ")[:2])
            base = next((base for base, (_, size) in maps.items() if base <= address < base + size), None)
            if base is not None:
                ops.append(Op(process, begin, end, "fault", maps[base][0], address - base, length))
        elif name == "write" and path and "/runs/" in path:
            count = int(answer.split()[0])
            ops.append(Op(process, begin, end, "write", path, written[path], count))
            written[path] += count
    return ops, misses


def shape(ops):
    """The figures of a start, by what was seen."""
    last, sequential, alone = {}, 0, 0
    ends = []
    for op in ops:
        if op.kind != "open":
            stream = op.thread, op.kind == "write", op.path
            sequential += last.get(stream) == op.offset
            last[stream] = op.offset + op.bytes
            alone += all(end <= op.begin for end in ends)
        ends = [end for end in ends if end > op.begin] + [op.end]
    ops = [op for op in ops if op.kind != "open"]
    reads, writes = [op for op in ops if op.kind != "write"], [op for op in ops if op.kind == "write"]
    return {
        "reads": len(reads),
        "read_bytes": sum(op.bytes for op in reads),
        "writes": len(writes),
        "written_bytes": sum(op.bytes for op in writes),
        "alone_percent": alone * 100 / len(ops),
        "sequential_percent": sequential * 100 / len(ops),
        "sizes": collections.Counter(op.bytes for op in ops),
    }


def order(ops, steps, tree):
    """Whether the reads and faults can be given to the steps one after another, as the TOML has them; the first that can't."""
    kinds = {"read": "read", "archive": "read", "map": "fault", "libraries": None}
    wanted = [(step[kind]["from"], kinds[kind]) for step in steps for kind in kinds if kind in step]
    at = 0
    for op in (op for op in ops if op.kind != "write"):
        name = op.path[len(tree) + 1 :]
        fits = lambda index: name.startswith(wanted[index][0] + "/") and wanted[index][1] in (None, op.kind)
        while at < len(wanted) and not fits(at):
            at += 1
        if at == len(wanted):
            return name
    return None


def from_device(ops, events, mount):
    """Pages asked for, those of them that the device served, and requests that served any; pages that it served twice."""
    places = {}
    for path in {op.path for op in ops if op.kind != "write"}:
        for offset, place, length in extents(path):
            places[place] = (length, path, offset)
    starts = sorted(places)
    served, requests = collections.Counter(), 0
    for _, place, length in events:
        before, done = len(served), 0
        while done < length:
            index = bisect.bisect_right(starts, place + done) - 1
            here = index >= 0 and starts[index] + places[starts[index]][0] > place + done
            if here:
                _, path, offset = places[starts[index]]
                served[path, (offset + place + done - starts[index]) // PAGE] += 1
            done += PAGE
        requests += len(served) > before
    asked = {(op.path, page) for op in ops if op.kind != "write" for page in range(op.offset // PAGE, -(-(op.offset + op.bytes) // PAGE))}
    return len(asked), sum(page in served for page in asked), requests, sum(served[page] > 1 for page in asked), len(served) - len(asked)


def look(name, options):
    text = (ROOT / "scenarios" / f"app-load-{name}.toml").read_text()
    spec = tomllib.loads(text)
    # Its cold start alone.
    kept = [part for part in re.split(r"(?=^\[\[phase\]\])", text, flags=re.M)]
    later = [index for index, part in enumerate(kept) if part.startswith("[[phase]]") and index > 1]
    for index in later:
        kept[index] = re.sub(r"^\[\[phase\]\]\n.*\n", "", kept[index])
    size = 4 + 2 * (name == "game")
    rig = slow_drive(options.dir, size, options.lab, options.delay) if options.lab else drive(options.dir, size)
    with rig as (device, mount):
        place = pathlib.Path(tempfile.mkdtemp(dir=options.dir))
        try:
            scenario, log = place / "scenario.toml", place / "strace"
            scenario.write_text("".join(kept))
            common = [options.copysim, "scenario", scenario, mount, "--runs", 1, "--no-verify", "--settle", "1s", "--yes", "--scale", options.scale, "--results", place]
            run(*common, quiet=True)
            events = BlockEvents(device)
            traced = "openat,pread64,mmap,munmap,madvise,write"
            run("strace", "-f", "-ttt", "-T", "-y", "-e", f"trace={traced}", "-o", log, *common, quiet=True)
            reads = events.close()
            ops, misses = operations(log)
            found, off = shape(ops), []
            ops = [op for op in ops if op.kind != "open"]
            tree = os.path.commonpath([op.path for op in ops if op.kind != "write"])
            tree = tree[: tree.index("/files") + len("/files")]
            asked, served, requests, twice, beyond = from_device(ops, reads, mount)
            wrong = order(ops, spec["step"], tree)
        finally:
            run("rm", "-r", place)
    print(f"\n## {spec['name']}\n\n| | seen | stated |\n|---|---|---|")
    stated = spec["shape"]
    full = options.scale == "100%"
    for key in ["reads", "read_bytes", "writes", "written_bytes"]:
        print(f"| {key} | {found[key]:,} | {stated[key]:,} |")
        if full and abs(found[key] - stated[key]) * 100 > stated[key]:
            off.append(key)
    total = found["reads"] + found["writes"]
    shares = [(key, found[key], stated[key]) for key in ["alone_percent", "sequential_percent"]]
    shares += [(f"of {size['bytes']} bytes, percent", found["sizes"][size["bytes"]] * 100 / total, size["percent"]) for size in stated["sizes"]]
    for key, is_, should in shares:
        print(f"| {key} | {is_:.1f} | {should} |")
        if full and abs(is_ - should) > 1 and (options.lab or key != "alone_percent"):
            off.append(key)
    print(f"| failed opens | {misses:,} | |")
    print(f"\nPages asked for: {asked:,}; served by the device in the window: {served:,}, twice: {twice:,}, others of these files: {beyond:,}; by {requests:,} requests.")
    if served != asked:
        off.append(f"{asked - served} pages came from a cache")
    if wrong:
        off.append(f"{wrong} is out of the order of the steps")
    print(f"Off: {'; '.join(off)}" if off else "As stated, in the order of the steps, and nothing came from a cache.")
    return not off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(STARTS)}; all when none is named")
    parser.add_argument("--scale", default="100%", help="scale of the tree; shapes are compared at 100%% only")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="where the image lies")
    parser.add_argument("--lab", type=pathlib.Path, help="the example lab-drive (cargo build --release --example lab-drive): without it what is asked for at once is not compared")
    parser.add_argument("--delay", default="5ms", help="how long each request takes with --lab [5ms]")
    parser.add_argument("--copysim", type=pathlib.Path, default=ROOT / "target/release/copysim", help="the program to look at")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise Refused("run this as root")
    good = [look(name.removeprefix("app-load-"), options) for name in options.scenario or STARTS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Refused as why:
        sys.exit(f"app_load.py: {why}")
