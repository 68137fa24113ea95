"""tour.py PAGE OUTPUT: writes the C++ blocks of a page as one program, whose errors name the page's lines.

A page may have one whole program instead, which begins with its file's name.
"""

import re
import sys
from pathlib import Path

page, output = map(Path, sys.argv[1:])
text = page.read_text()
includes, body = ["#undef NDEBUG"], ["int main() {"]
for block in re.finditer(r"^```cpp\n(.*?)^```", text, re.S | re.M):
    first = text.count("\n", 0, block.start()) + 2
    body.append(f'#line {first} "{page}"')
    for line in block[1].splitlines():
        is_include = line.startswith("#include")
        body.append("" if is_include else line)
        includes += [line] if is_include else []
whole = re.search(r"^```cpp\n// \w+\.cc\n(.*?)^```", text, re.S | re.M)
output.write_text(whole[1] if whole else "\n".join(includes + body + ["}"]) + "\n")
