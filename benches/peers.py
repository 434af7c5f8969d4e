#!/usr/bin/env python3
"""Measures copysim against programs that do the same work, by alternating pairs: python3 benches/peers.py [--pairs 15] [--dir DIR] [--only NAME,…]

How it measures. A round runs copysim, the peer, and the peer once more: copysim and the control are both set against the run in the middle, and every
second round goes backwards, so that the order within a pair alternates. Before each run the files of the one before are removed, everything is flushed
(sync), the caches are dropped, the programs are read into memory again (their own loading is not the work), and the disk has been idle for a second.

How it decides. A ratio is the geometric mean of the paired ratios: exp(mean of their logarithms), with the 95 % interval of Student's t. "At most LIMIT" is
  yes                           when the ratio and the upper end of its interval are at most LIMIT,
  no                            when the ratio and the lower end of its interval are above LIMIT,
  this machine is too noisy     otherwise, and whenever the control fails: its interval leaves out 1 and its ratio is off by more than 2 %.
With fewer than 15 pairs nothing is claimed of times except where a claim says so itself.

With --image SIZE all of it happens on an ext4 file system of its own in a file of that size, every byte of which is written first, by a loop device past
the cache. The blocks of a virtual or thin-provisioned disk are slower when they are written for the first time, and whoever happens to get such blocks
looks slow; in a small image both get blocks that were written before.

In a virtual machine that gives its free memory back to its host (free page reporting), a page costs a fault in the host the first time after that, and
whoever runs after a longer pause looks slow. Where the kernel lets it, that is switched off while this runs, and on again at the end, and what was given
back is fetched once before anything is measured.

It needs root (to drop caches), GNU coreutils and findutils, and on PATH: fio and f3 (packages of every distribution), xcp and b3sum (cargo install xcp b3sum).
It writes to one new directory below --dir, which it removes at the end and on Ctrl-C. How fast content is made is measured by `cargo bench --bench content`.
"""

import argparse
import contextlib
import json
import math
import mmap
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
LEAST_PAIRS = 15
CONTROL_OFF = 0.02
PEAK_RSS_LIMIT = 64 * MIB
SMALL, LARGE = ("100%", 50_000), ("2000%", 1_000_000)
# 1,000,000 small files and one copy of them: 12 GB each, more in blocks of 4 KiB.
LARGE_NEED = {"bytes": 36 * 10**9, "inodes": 2_600_000}
NOT_IDLE = "the disk was not idle before {} of {} runs"


class Refused(Exception):
    """What the user has to put right."""


# ---- statistics ----


def student_t(degrees):
    """The 97.5 % quantile of Student's t: a table, and from 10 degrees on the expansion of Abramowitz and Stegun, 26.7.5, good to four digits."""
    table = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
    if degrees <= len(table):
        return table[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


def ratio(above, below):
    """Geometric mean of paired ratios and its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(above, below)]
    mean = statistics.fmean(logs)
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    low, high = (math.exp(mean - half), math.exp(mean + half)) if half < 700 else (0.0, math.inf)
    return {"n": len(logs), "ratio": math.exp(mean), "low": low, "high": high}


def verdict(found, control, limit, least_pairs):
    if found["n"] < least_pairs:
        return f"not claimed: {found['n']} pairs, {least_pairs} are needed"
    if control and not control["low"] <= 1 <= control["high"] and abs(control["ratio"] - 1) > CONTROL_OFF:
        return "this machine is too noisy (the control fails)"
    if found["ratio"] <= limit and found["high"] <= limit:
        return "yes"
    if found["ratio"] > limit and found["low"] > limit:
        return "no"
    return "this machine is too noisy"


# ---- running ----


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.copysim = options.copysim
        self.corpus_home = directory / "corpus"
        self.runs = self.busy = 0
        self.child = None

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def run(self, *command, cwd=None, out=subprocess.DEVNULL):
        """Runs a program to its end. Its wall time in seconds and its peak resident set in bytes (at least that of this interpreter, whose memory the
        program shares for the moment between fork and exec)."""
        with tempfile.TemporaryFile() as said:
            start = time.perf_counter()
            self.child = subprocess.Popen([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=said)
            _, status, usage = os.wait4(self.child.pid, 0)
            seconds = time.perf_counter() - start
            self.child.returncode = os.waitstatus_to_exitcode(status)
            if self.child.returncode != 0:
                said.seek(0)
                words = said.read().decode(errors="replace").strip()
                raise Refused(f"{' '.join(map(str, command))} ended with {self.child.returncode}: {words}")
        return seconds, usage.ru_maxrss * 1024

    def remove(self, *paths):
        for path in paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def prepare(self, *programs):
        """The state from which each run starts. Programs and their libraries are in memory; nothing else is."""
        os.sync()
        for attempt in range(2):
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            if attempt == 0:
                self.wait_until_idle()
        for program in programs:
            subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        self.runs += 1

    def wait_until_idle(self):
        """A second in which the disk completed no write; gives up after a while and counts that."""
        deadline = time.monotonic() + self.options.patience
        last, since = self.writes(), time.monotonic()
        while time.monotonic() - since < 1:
            time.sleep(0.05)
            now = self.writes()
            if now != last:
                last, since = now, time.monotonic()
            if time.monotonic() > deadline:
                self.busy += 1
                return

    def writes(self):
        """Writes completed and requests under way: of the device under the directory, or of all where it has no line of its own."""
        device = os.stat(self.directory).st_dev
        lines = [line.split() for line in pathlib.Path("/proc/diskstats").read_text().splitlines()]
        mine = [line for line in lines if (int(line[0]), int(line[1])) == (os.major(device), os.minor(device))]
        return [(line[7], line[11]) for line in mine or lines]

    def corpus(self):
        """The corpus that is copied and verified, made once: its tree and its bytes."""
        tree = self.corpus_home / "copysim-workspace" / "corpora"
        if not tree.exists():
            self.corpus_home.mkdir()
            self.say(f"making the corpus jpg at {self.options.scale}")
            self.run(self.copysim, "corpus", "generate", "jpg", self.corpus_home, "--scale", self.options.scale, "--quiet")
        (corpus,) = tree.iterdir()
        files = corpus / "files"
        return files, sum(path.stat().st_size for path in files.rglob("*") if path.is_file())

    def scenario(self, name, home, *options):
        """Runs a scenario; the durable time of its copy in seconds, and the peak resident set."""
        record = self.directory / "record.json"
        results = self.directory / "results"
        common = ["--runs", "1", "--settle", "0s", "--yes", "--quiet", "--results", results, "--json", record]
        _, rss = self.run(self.copysim, "scenario", name, home, *common, *options)
        (phase,) = json.loads(record.read_text())["runs"][0]["phases"]
        self.remove(results, record)
        return phase["window"]["durable_ns"] / 1e9, rss

    def rounds(self, name, pairs, subject, peer):
        """Seconds of copysim, of the peer, and of the peer as its own control."""
        values = {"copysim": [], "peer": [], "control": []}
        for index in range(pairs):
            order = [("copysim", subject), ("peer", peer), ("control", peer)]
            for who, measure in order if index % 2 == 0 else reversed(order):
                values[who].append(measure())
            self.say(f"{name} {index + 1}/{pairs}: " + ", ".join(f"{who} {1000 * times[-1]:.1f} ms" for who, times in values.items()))
        return values

    def against(self, name, peer_words, limit, subject, peer, pairs=None):
        runs, busy = self.runs, self.busy
        values = self.rounds(name, pairs or self.options.pairs, subject, peer)
        found, control = ratio(values["copysim"], values["peer"]), ratio(values["control"], values["peer"])
        claim = {"claim": name, "peer": peer_words, "limit": limit, **found, "control": control, "seconds": values}
        claim["verdict"] = verdict(found, control, limit, LEAST_PAIRS)
        claim["runs"], claim["not_idle_before"] = self.runs - runs, self.busy - busy
        return claim


# ---- the claims ----


def generate(bench):
    """Making a corpus takes at most 1.15 times as long as fio takes to write as many bytes into one file."""
    _, size = bench.corpus()
    home, file = bench.directory / "generated", bench.directory / "fio-file"

    def subject():
        home.mkdir()
        bench.prepare(bench.copysim)
        seconds, _ = bench.run(bench.copysim, "corpus", "generate", "jpg", home, "--scale", bench.options.scale, "--quiet")
        bench.remove(home)
        return seconds

    def peer():
        bench.prepare("fio")
        job = ["--name=write", f"--filename={file}", "--rw=write", "--bs=1M", "--ioengine=psync", "--direct=0", f"--size={size}", "--end_fsync=1"]
        seconds, _ = bench.run("fio", *job)
        bench.remove(file)
        return seconds

    return [bench.against("generate", f"fio, {size} bytes into one file, end_fsync", 1.15, subject, peer)]


def copying(bench, name, peer_words, options, program, command):
    tree, _ = bench.corpus()
    copy = bench.directory / "copy"

    def subject():
        bench.prepare(bench.copysim)
        return bench.scenario("jpg-same-drive", bench.corpus_home, "--scale", bench.options.scale, "--no-verify", "--cache", "cold", *options)[0]

    def peer():
        bench.prepare(program, "sync")
        copied, _ = bench.run(*command, tree, copy)
        flushed, _ = bench.run("sync", "-f", copy)
        bench.remove(copy)
        return copied + flushed

    return [bench.against(name, peer_words, 1.0, subject, peer)]


def copy(bench):
    """A cold copy is durable no later than with cp and sync -f."""
    return copying(bench, "copy", "cp -r --reflink=never; sync -f", [], "cp", ["cp", "-r", "--reflink=never"])


def threads(bench):
    """A cold copy by four threads is durable no later than with four workers of xcp and sync -f."""
    return copying(bench, "threads", "xcp -r -w 4; sync -f", ["--threads", "4"], "xcp", ["xcp", "-r", "-w", "4"])


def verify(bench):
    """Verifying a cold corpus takes no longer than hashing its files with b3sum."""
    tree, _ = bench.corpus()

    def subject():
        bench.prepare(bench.copysim)
        return bench.run(bench.copysim, "corpus", "verify", tree, "--quiet")[0]

    def peer():
        bench.prepare("b3sum", "find", "xargs")
        return bench.run("sh", "-c", "find . -type f -print0 | xargs -0 -n 1000000 -s 1500000 b3sum", cwd=tree)[0]

    return [bench.against("verify", "find -print0 | xargs -0 b3sum", 1.0, subject, peer)]


def small_files(bench):
    """1,000,000 small files take at most 1.3 times as long a file as 50,000 do (made, copied, verified), and at most 64 MiB of memory."""
    space = os.statvfs(bench.directory)
    have = {"bytes": space.f_bavail * space.f_frsize, "inodes": space.f_favail or LARGE_NEED["inodes"]}
    for what, needed in LARGE_NEED.items():
        if have[what] < needed:
            raise Refused(f"1,000,000 small files and their copy need {needed} {what}, and there are {have[what]}")
    pairs = min(3, bench.options.pairs)
    steps = {"generate": {}, "copy": {}, "verify": {}}
    peak = {}

    def once(scale, files):
        home = bench.directory / "small"
        home.mkdir()
        rss = {}
        bench.prepare(bench.copysim)
        generated, rss["generate"] = bench.run(bench.copysim, "corpus", "generate", "small-files", home, "--scale", scale, "--quiet")
        bench.prepare(bench.copysim)
        copied, rss["scenario"] = bench.scenario("small-files-same-drive", home, "--scale", scale)
        bench.prepare(bench.copysim)
        verified, rss["verify"] = bench.run(bench.copysim, "corpus", "verify", home, "--quiet")
        bench.remove(home)
        os.sync()
        for step, seconds in zip(steps, (generated, copied, verified)):
            steps[step].setdefault(files, []).append(seconds / files)
        for step, size in rss.items():
            peak[f"{step} {files}"] = max(size, peak.get(f"{step} {files}", 0))
        taken = f"generate {generated:.1f} s, copy {copied:.1f} s, verify {verified:.1f} s"
        bench.say(f"small-files {files}: {taken}; peak RSS {max(rss.values()) / MIB:.1f} MiB")

    runs, busy = bench.runs, bench.busy
    for index in range(pairs):
        for scale, files in (SMALL, LARGE) if index % 2 == 0 else (LARGE, SMALL):
            once(scale, files)
    few, many = ([sum(values) for values in zip(*(step[files] for step in steps.values()))] for _, files in (SMALL, LARGE))
    found = ratio(many, few)
    claims = [
        {
            "claim": "small-files",
            "peer": "time a file at 1,000,000 against 50,000",
            "limit": 1.3,
            **found,
            "control": None,
            "verdict": verdict(found, None, 1.3, 3),
            "steps": {step: ratio(values[LARGE[1]], values[SMALL[1]]) for step, values in steps.items()},
            "seconds_per_file": steps,
            "runs": bench.runs - runs,
            "not_idle_before": bench.busy - busy,
        }
    ]
    highest = max(peak.values())
    claims.append(
        {
            "claim": "memory",
            "peer": "peak resident set of all of this, 64 MiB",
            "limit_bytes": PEAK_RSS_LIMIT,
            "bytes": highest,
            "peak_bytes": peak,
            "verdict": "yes" if highest <= PEAK_RSS_LIMIT else "no",
        }
    )
    return claims


def start_up(bench):
    """Listing what there is takes at most 1.5 times as long as fio takes to say its version."""

    def subject():
        return bench.run(bench.copysim, "list")[0]

    def peer():
        return bench.run("fio", "--version")[0]

    subject(), peer()
    return [bench.against("list", "fio --version", 1.5, subject, peer, pairs=max(100, bench.options.pairs))]


# A file system of its own, so that both fill the same space.
IMAGE_BYTES = 2 * 10**9
# At least 0.95 times the peer's rate.
CAPACITY_LIMIT = round(1 / 0.95, 4)


class Image:
    """An ext4 of 2 GB on a loop device past the page cache."""

    def __init__(self, bench, name):
        self.bench, self.file, self.point = bench, bench.directory / f"{name}.img", bench.directory / name

    def __enter__(self):
        # Written once, so that no run waits for space to be found.
        with self.file.open("wb") as file:
            for _ in range(IMAGE_BYTES // MIB):
                file.write(bytes(MIB))
        self.point.mkdir()
        self.bench.run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.file)
        said = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self.file], capture_output=True, text=True, check=True)
        self.device = said.stdout.strip()
        self.bench.run("mount", self.device, self.point)
        return self.point

    def __exit__(self, *_):
        self.bench.child = None
        subprocess.run(["umount", self.point], check=False)
        subprocess.run(["losetup", "-d", self.device], check=False)
        self.file.unlink()
        self.point.rmdir()


def check_capacity(bench, point, *options):
    """Runs a check of the capacity; its phases by name."""
    record, results = bench.directory / "record.json", bench.directory / "results"
    bench.run(bench.copysim, "capacity", point, "--yes", "--quiet", "--results", results, "--json", record, *options)
    phases = {phase["name"]: phase for phase in json.loads(record.read_text())["runs"][0]["phases"]}
    record.unlink()
    return phases


def per_byte(phase):
    """Seconds that a gigabyte takes: two programs leave a different rest."""
    return phase["window"]["durable_ns"] / phase["bytes"]


def written_by_f3(point):
    return sum(path.stat().st_size for path in point.glob("*.h2w"))


def capacity_write(bench):
    """Filling a drive runs at 0.95 times the rate of f3write at least."""
    with Image(bench, "filled") as point:

        def subject():
            bench.prepare(bench.copysim)
            phases = check_capacity(bench, point)
            bench.remove(bench.directory / "results")
            return per_byte(phases["write"])

        def peer():
            bench.prepare("f3write")
            seconds, _ = bench.run("f3write", point)
            size = written_by_f3(point)
            bench.remove(*point.glob("*.h2w"))
            return seconds * 1e9 / size

        return [bench.against("capacity-write", "f3write, seconds for each GB", CAPACITY_LIMIT, subject, peer)]


def capacity_read(bench):
    """Reading test data again and judging them runs at 0.95 times the rate of f3read at least."""
    with Image(bench, "ours") as ours, Image(bench, "theirs") as theirs:
        check_capacity(bench, ours, "--keep")
        bench.run("f3write", theirs)

        def subject():
            bench.prepare(bench.copysim)
            return per_byte(check_capacity(bench, ours, "--keep")["read"])

        def peer():
            bench.prepare("f3read")
            seconds, _ = bench.run("f3read", theirs)
            return seconds * 1e9 / written_by_f3(theirs)

        claim = bench.against("capacity-read", "f3read, seconds for each GB", CAPACITY_LIMIT, subject, peer)
        bench.remove(bench.directory / "results")
        return [claim]


CLAIMS = {
    "generate": (generate, ["fio"]),
    "copy": (copy, ["cp", "sync"]),
    "threads": (threads, ["xcp", "sync"]),
    "verify": (verify, ["b3sum", "find", "xargs"]),
    "small-files": (small_files, []),
    "capacity-write": (capacity_write, ["f3write", "losetup"]),
    "capacity-read": (capacity_read, ["f3read", "f3write", "losetup"]),
    "list": (start_up, ["fio"]),
}


# ---- the report ----


def line(claim):
    def interval(found):
        return f"{found['ratio']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"

    head = f"{claim['claim']:<12} {claim['peer']}\n{'':<12} "
    if "bytes" in claim:
        return head + f"{claim['bytes'] / MIB:.1f} MiB; at most {claim['limit_bytes'] / MIB:.0f} MiB: {claim['verdict']}"
    text = head + f"n = {claim['n']}, ratio {interval(claim)}"
    if claim["control"]:
        text += f", control {interval(claim['control'])}"
    text += f"; at most {claim['limit']}: {claim['verdict']}"
    for step, found in claim.get("steps", {}).items():
        text += f"\n{'':<12} {step}: {interval(found)}"
    if claim["not_idle_before"]:
        text += f"\n{'':<12} {NOT_IDLE.format(claim['not_idle_before'], claim['runs'])}"
    return text


def version(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0] if said else "unknown"


class Image:
    """A small file system whose every block was written before, on a loop device of its own."""

    def __init__(self, directory, size):
        self.device = None
        self.file, self.mounted = directory / "image", directory / "mounted"
        with open(self.file, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        self.mounted.mkdir()
        try:
            shown = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self.file], check=True, capture_output=True, text=True)
            self.device = shown.stdout.strip()
            subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", self.device], check=True)
            subprocess.run(["mount", self.device, self.mounted], check=True)
        except (subprocess.CalledProcessError, OSError) as error:
            self.close()
            raise Refused(f"no file system could be made in an image: {error}") from error

    def close(self):
        if os.path.ismount(self.mounted):
            subprocess.run(["umount", self.mounted], check=True)
        if self.device:
            subprocess.run(["losetup", "--detach", self.device], check=True)
            self.device = None


class KeptMemory:
    """While this is open the kernel gives no free memory back to the machine's host: pages are reported from an order on, and the greatest is never reached."""

    setting = pathlib.Path("/sys/module/page_reporting/parameters/page_reporting_order")

    def __init__(self):
        self.was = None
        with contextlib.suppress(OSError):
            was = self.setting.read_text()
            for order in range(int(was) + 8, int(was), -1):
                with contextlib.suppress(OSError):
                    self.setting.write_text(str(order))
                    self.was = was
                    break
        if self.was is not None:
            self.fetch()

    @staticmethod
    def fetch():
        """Touches most of the free memory, so that the host has given it before anything is measured."""
        available = next(int(line.split()[1]) * 1024 for line in open("/proc/meminfo") if line.startswith("MemAvailable:"))
        with mmap.mmap(-1, available * 8 // 10) as memory:
            for offset in range(0, len(memory), mmap.PAGESIZE):
                memory[offset] = 1

    def close(self):
        if self.was is not None:
            self.setting.write_text(self.was)


def parse():
    text = __doc__.split("\n\n", 1)
    built = pathlib.Path(__file__).resolve().parent.parent / "target" / "release" / "copysim"
    parser = argparse.ArgumentParser(description=text[0], epilog=text[1], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=LEAST_PAIRS, help="pairs of each claim [15]; the start-up takes 100, the small files at most 3")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path.cwd(), help="where to work [here]: the drive that is used")
    parser.add_argument("--image", type=int, metavar="GB", help="work on a file system of its own of so many GB, written before: see below")
    parser.add_argument("--only", default=",".join(CLAIMS), help=f"claims, by comma [{','.join(CLAIMS)}]")
    parser.add_argument("--scale", default="20%", help="scale of the corpus jpg [20%%: 1.7 GB]")
    parser.add_argument("--patience", type=float, default=30, help="seconds that an idle disk is waited for before each run [30]")
    parser.add_argument("--copysim", type=pathlib.Path, default=built, help="the program to measure [target/release/copysim]")
    parser.add_argument("--json", type=pathlib.Path, help="also write everything measured to this file")
    options = parser.parse_args()
    options.names = [name for name in options.only.split(",") if name]
    options.copysim = options.copysim.resolve()
    for name in options.names:
        if name not in CLAIMS:
            raise Refused(f"there is no claim {name!r}: choose of {', '.join(CLAIMS)}")
    if options.pairs < 2:
        raise Refused("--pairs: an interval needs at least 2")
    if not os.access(options.copysim, os.X_OK):
        raise Refused(f"{options.copysim} is not there: build it with `cargo build --release`")
    if os.geteuid() != 0:
        raise Refused("dropping caches needs root: run this as root")
    missing = sorted({program for name in options.names for program in CLAIMS[name][1] if not shutil.which(program)})
    if missing:
        raise Refused(f"not on PATH: {', '.join(missing)}. fio and f3 are packages of every distribution; the others: cargo install xcp b3sum")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = directory = image = memory = None
    try:
        options = parse()
        directory = pathlib.Path(tempfile.mkdtemp(prefix="copysim-peers-", dir=options.dir)).resolve()
        if options.image:
            image = Image(directory, options.image * 10**9)
        memory = KeptMemory()
        bench = Bench(options, image.mounted if image else directory)
        programs = sorted({program for name in options.names for program in CLAIMS[name][1]})
        document = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "architecture": platform.machine()},
            "programs": {program: version(program) for program in [str(options.copysim), *programs]},
            "scale": options.scale,
            "claims": [],
        }
        for name in options.names:
            for claim in CLAIMS[name][0](bench):
                document["claims"].append(claim)
                print(line(claim), flush=True)
            if options.json:
                options.json.write_text(json.dumps(document, indent=1) + "\n")
        return 1 if any(claim["verdict"] == "no" for claim in document["claims"]) else 0
    except Refused as reason:
        print(f"peers.py: {reason}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("peers.py: interrupted", file=sys.stderr)
        return 130
    finally:
        # A second Ctrl-C must not leave files behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if bench and bench.child and bench.child.returncode is None:
            bench.child.terminate()
            bench.child.wait()
        if image:
            image.close()
        if directory:
            shutil.rmtree(directory, ignore_errors=True)
        if memory:
            memory.close()


if __name__ == "__main__":
    sys.exit(main())
