"""Runs the README's example as two processes, and holds the README's text against the files."""

import re
import subprocess
import sys
from pathlib import Path

receiver, sender, readme, folder = sys.argv[1:]

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
print("1 passed, 0 failed")
