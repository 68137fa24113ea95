#!/usr/bin/env python3
"""Compiles and runs the C++ programs of the documentation, with nothing changed but addresses.

Where the text is not at hand it says so and succeeds: the programs beside this script have every
call shape of it and are tested everywhere.

The programs can be built now and run elsewhere, where there is no compiler: --only build, then --only
run with the same --folder. --conn-type makes all of them ask for that transport.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile

PATIENCE = 120


def cpp_blocks(text):
    """The fenced C++ blocks that are programs, in order."""
    blocks = re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
    return [block for block in blocks if "#include <hmc.h>" in block]


def whole_program(block):
    """Statements without a main() become one."""
    if "int main(" in block:
        return block
    lines = block.splitlines()
    head = [line for line in lines if line.startswith(("#include", "using namespace"))]
    body = [line for line in lines if line not in head]
    return "\n".join(head + ["int main() {"] + body + ["}", ""])


def free_port():
    """Outside the range that the kernel gives to dialling sockets."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Ports(dict):
    """A free port for each one that a program names."""

    def __missing__(self, port):
        self[port] = free_port()
        return self[port]


def at_this_address(program, ports):
    program = re.sub(r'"192\.168\.\d+\.\d+"', '"127.0.0.1"', program)
    return re.sub(r"\b(2025|5001|5555)\b", lambda match: str(ports[int(match[0])]), program)


class Server:
    """The test's peer program, listening as the programs expect it."""

    def __init__(self, peer, size, data, control, kind):
        self.process = subprocess.Popen([peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.ask(f"communicator {size}")
        self.ask(f"server 127.0.0.1 {data} {control} - {kind}")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok"):
            raise AssertionError(f"{line}: {answer}")
        return answer[3:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class Workshop:
    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def program(self, name, block):
        """A program made of the block, and the ports that it uses by the numbers in the text."""
        path, notes = self.folder / name, self.folder / f"{name}.ports"
        if self.options.only != "run":
            ports = Ports()
            self.compile(path, self.adapted(block, ports))
            notes.write_text(json.dumps(ports))
        return path, {int(port): ours for port, ours in json.loads(notes.read_text()).items()}

    def adapted(self, block, ports):
        program = at_this_address(whole_program(block), ports)
        if self.options.conn_type:
            program = re.sub(r"ConnType::\w+", f"ConnType::{self.options.conn_type}", program)
        return program

    def compile(self, path, program):
        source = path.with_suffix(".cc")
        source.write_text(program)
        library = pathlib.Path(self.options.library)
        subprocess.run(
            [self.options.compiler, "-std=c++14", "-Wall", "-I", self.options.include, source,
             "-o", path, library, f"-Wl,-rpath,{library.parent}", "-lpthread",
             *self.options.flag], check=True)

    def serve(self, size, data, control, kind):
        return Server(self.options.peer, size, data, control, self.options.conn_type or kind)

    def run(self, program, **environment):
        done = subprocess.run([program], env={**os.environ, **environment}, timeout=PATIENCE,
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{program.name} ended with {done.returncode}")
        return done.stdout


def expect(name, got, wanted):
    if got != wanted:
        raise AssertionError(f"{name}: {got!r} instead of {wanted!r}")
    print(f"ok: {name}")


def minimal_put(shop, program, ports):
    with shop.serve(128 << 20, ports[2025], ports[5001], "UCX") as server:
        shop.run(program)
        expect("the minimal put", server.ask("text 0 1025"), "A" * 1024 + ".")


def device_memory(shop, program, _):
    shop.run(program, HMC_MEMORY_PLUGIN=shop.options.plugin, HMC_FAKE_KIND="cuda")
    expect("the memory example on a fake accelerator", True, True)


def first_generation(shop, program, ports):
    shop.run(program, HMC_CONNECT_TIMEOUT_MS="300")
    expect("the RDMA example alone, which connects before it listens", True, True)
    with shop.serve(64 << 20, ports[2025], 0, "RDMA") as server:
        server.ask("fill 0 8192 9")
        shop.run(program)
        expect("the RDMA example with a server",
               server.ask("text 0 4096"), "." * 4096)


def control_channel(shop, program, _):
    expect("the control channel example", shop.run(program), "Received control value: 42\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("seeds", "compiler", "include", "library", "peer", "plugin"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--folder", help="for the built programs; forgotten when not given")
    parser.add_argument("--only", choices=("build", "run"))
    parser.add_argument("--conn-type", choices=("RDMA", "UCX", "TCP", "IPC", "AUTO"))
    options = parser.parse_args()
    if options.only and not options.folder:
        parser.error("--only needs --folder: where the built programs are")
    return options


def main():
    options = parse_arguments()
    seeds = pathlib.Path(options.seeds)
    found = [sorted(seeds.glob(f"{number}_*.txt")) for number in ("000", "002")]
    if not all(found):
        print(f"{seeds} does not hold the documentation: this tree's own equivalents are the test.")
        return 0
    readme, manual = (cpp_blocks(files[0].read_text()) for files in found)
    examples = [(minimal_put, readme[0]), (device_memory, manual[0]), (first_generation, manual[1]),
                (control_channel, manual[2])]
    with contextlib.ExitStack() as stack:
        folder = options.folder or stack.enter_context(tempfile.TemporaryDirectory())
        shop = Workshop(options, folder)
        for example, block in examples:
            program, ports = shop.program(example.__name__, block)
            if options.only != "build":
                example(shop, program, ports)
    return 0


if __name__ == "__main__":
    sys.exit(main())
