#!/usr/bin/env python3
"""vmlinux.py VMLINUZ VMLINUX: the kernel inside a compressed image of x86.

An emulated processor unpacks slowly: booting what was unpacked here saves half of the boot. The
fields are those of the kernel's Documentation/arch/x86/boot.rst.
"""

import lzma
import pathlib
import struct
import subprocess
import sys
import zlib

SETUP_SECTORS = 0x1F1
PAYLOAD = 0x248  # offset from the end of the setup sectors, and length
SECTOR = 512
ELF = b"\x7fELF"


def payload(image):
    sectors = image[SETUP_SECTORS] or 4
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    start = (sectors + 1) * SECTOR + offset
    return image[start:start + length]


def unpacked(data):
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # The last four bytes are the size, which zstd would take for another frame.
        return subprocess.run(["zstd", "-dc"], input=data[:-4], stdout=subprocess.PIPE,
                              check=True).stdout
    sys.exit(f"vmlinux: a kernel packed in an unknown way: it begins with {data[:6].hex()}")


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    kernel = unpacked(payload(source.read_bytes()))
    if not kernel.startswith(ELF):
        sys.exit(f"vmlinux: what {source} holds is no ELF file")
    target.write_bytes(kernel)


if __name__ == "__main__":
    main()
