"""Runs the README's example as two processes, holds the README's text against the files, and runs programs
that start their ranks themselves."""

import random
import re
import socket
import subprocess
import sys
from pathlib import Path

receiver, sender, readme, folder, *ranked = sys.argv[1:]


def free_port():
    """One that nobody listens on, outside the range that the kernel gives to dialling sockets."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


blocks = re.findall(r"```cpp\n// (\w+\.cc)\n(.*?)```", Path(readme).read_text(), re.S)
assert len(blocks) == 2, f"the README shows {len(blocks)} examples, expected 2"
for name, text in blocks:
    assert text == (Path(folder) / name).read_text(), f"the README's {name} is not the file"

with subprocess.Popen([receiver], stdout=subprocess.PIPE, text=True) as process:
    try:
        address = process.stdout.readline().strip()
        subprocess.run([sender, address], check=True, timeout=60)
        heard = process.stdout.readline().strip()
        assert heard == "look: hello, memory", heard
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
for program in ranked:
    subprocess.run([program, f"tcp://127.0.0.1:{free_port()}", "4"], check=True, timeout=60)
print(f"{1 + len(ranked)} passed, 0 failed")
