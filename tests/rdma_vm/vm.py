#!/usr/bin/env python3
"""Runs a command in a small virtual machine that has RDMA devices made of software.

    vm.py [--seconds N] [--out FOLDER] [--set NAME=VALUE]... -- COMMAND...

The command sees the host's files as they are, in the same folder; what it writes is forgotten with the
machine, except below FOLDER, which it sees as /run/out. The exit status is the command's, 124 when it
took too long, 125 when the machine gave no answer, and 77 when no such machine can run here.
"""

import argparse
import ctypes
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
CANNOT_RUN = 77
NO_ANSWER = 125
# Boot, and what the command may take beyond its time until it is killed.
BOOT_SECONDS = 60

# Each program that is needed, and the package that has it.
NEEDS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "modprobe": "kmod",
    "xz": "xz-utils",
    "zstd": "zstd",
    "strip": "binutils",
    "rdma": "iproute2",
    "apt-get": "apt",
    "dpkg": "dpkg",
}


class CannotRun(Exception):
    """Why there can be no such machine here."""


def check_host():
    if platform.machine() != "x86_64":
        raise CannotRun(f"the RDMA test machine is an x86-64 one, and this is {platform.machine()}: "
                        "run these tests on an x86-64 host")
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    for program, package in NEEDS.items():
        if not shutil.which(program, path=path):
            raise CannotRun(f"{program} is missing: apt install {package}, or all that is needed with "
                            "tools/setup.sh rdma")


def image():
    """The kernel and the first file system."""
    made = subprocess.run([HERE / "build_image.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        raise CannotRun("the image of the RDMA test machine could not be made: see above")
    return made.stdout.split()


def write_orders(out, command, seconds, settings):
    """What guest.sh reads."""
    for old in ("status", "dmesg.txt"):
        (out / old).unlink(missing_ok=True)
    shutil.copy(HERE / "guest.sh", out)
    settings = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root"), **settings,
                "RDMA_VM_FOLDER": os.getcwd(), "RDMA_VM_SCRIPTS": str(HERE),
                "RDMA_VM_SECONDS": str(seconds)}
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in settings.items()]
    (out / "settings").write_text("".join(lines))
    (out / "command").write_text(shlex.join(command) + "\n")


def qemu(kernel, first_files, out, memory):
    share = "security_model=none,multidevs=remap"
    return [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        # Software emulation always: a /dev/kvm that is there may be one that cannot boot this kernel.
        "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512",
        # Carry-less multiplication is slow to emulate, and the kernel would use it for checksums.
        "-cpu", "max,la57=off,pclmulqdq=off",
        # With one processor two pollers would take turns of 4 ms.
        "-smp", "2", "-m", str(memory),
        "-kernel", kernel, "-initrd", first_files,
        "-append", "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable "
                   "random.trust_cpu=on net.ifnames=0",
        "-serial", "stdio", "-device", "virtio-rng-pci",
        "-fsdev", f"local,id=root,path=/,readonly=on,{share}",
        "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
        "-fsdev", f"local,id=out,path={out},{share}",
        "-device", "virtio-9p-pci,fsdev=out,mount_tag=out",
    ]


def die_with_parent():
    """In the child: the kernel ends it when this process ends, however it does."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command, out, seconds, settings=None, memory=2048):
    """Runs `command` in the machine; prints and keeps its console. Returns the exit status."""
    check_host()
    out = pathlib.Path(out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    write_orders(out, command, seconds, settings or {})
    words = qemu(*image(), out, memory)
    with open(out / "console.log", "w", encoding="utf-8") as log, subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", preexec_fn=die_with_parent) as machine:
        patience = threading.Timer(seconds + BOOT_SECONDS, machine.kill)
        patience.start()
        try:
            for line in machine.stdout:
                line = line.replace("\r", "")
                log.write(line)
                print(line, end="", flush=True)
        finally:
            patience.cancel()
            machine.kill()
    try:
        return int((out / "status").read_text())
    except (OSError, ValueError):
        print(f"rdma_vm: no answer from the machine, see {out}/console.log", flush=True)
        return NO_ANSWER


def end_on_signals():
    """So that the machine ends with us in an orderly way."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300, help="that the command may take")
    parser.add_argument("--out", help="a folder for its console, and for files that it leaves")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a variable of the command's environment")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    end_on_signals()
    settings = dict(setting.split("=", 1) for setting in options.set)
    try:
        with tempfile.TemporaryDirectory() as forgotten:
            return run(options.command, options.out or forgotten, options.seconds, settings)
    except CannotRun as why:
        print(f"rdma_vm: {why}", file=sys.stderr)
        return CANNOT_RUN
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
