#!/usr/bin/env python3
"""Includes go one way: which folder of src/ may include which, and who may use which library."""

import pathlib
import re

import project

# Every folder may include itself and include/'s vocabulary.
ALLOWED = {
    "base": set(),
    "memory": {"base"},
    "transport": {"memory", "base"},
    "transfer": {"transport", "memory", "base"},
    "control": {"base"},
    "store": {"control", "base"},
    "node": {"transfer", "control", "transport", "memory", "base"},
    "collective": {"node", "memory", "base"},
    "pool": {"store", "node", "transfer", "memory", "base"},
    "agent": {"pool", "store", "node", "base"},
    # The facades convert and call: node and pool do the work.
    "api": {"node", "pool", "base"},
    "capi": {"node", "pool", "agent", "base"},
}

# Public headers that are words, not classes. The others belong to the folders that implement them.
VOCABULARY = {"hmc/access.h", "hmc/block.h", "hmc/deadline.h", "hmc/device.h", "hmc/export.h", "hmc/result.h",
              "hmc/log.h", "hmc/status.h", "hmc/tls.h", "hmc/trace.h", "hmc/version.h"}
FACADES = {"agent", "api", "capi", "collective", "node", "pool", "store"}

# Headers of a library, and the folders of src/ where they may appear.
LIBRARIES = [
    (r"openssl/", ("base", "control", "store")),
    (r"spdlog/", ("base",)),
    (r"nlohmann/", ("store/etcd",)),
    (r"curl/", ("store/etcd",)),
    (r"CLI/", ()),
    (r"(cuda|nvml)\w*\.h", ("memory/cuda",)),
    (r"(hip|hsa|rocm)/", ("memory/hip",)),
    (r"(cnrt|cn_api|cndev)\w*\.h", ("memory/cnrt",)),
    (r"acl/", ("memory/acl",)),
    (r"(musa|mtml)\w*\.h", ("memory/musa",)),
    (r"(ucp|uct|ucs|ucm)/", ("transport/ucx",)),
    (r"(infiniband|rdma)/", ("transport/verbs",)),
]
# What a header of include/ may not show its users.
THIRD_PARTY = re.compile(r"(fmt|spdlog|openssl|nlohmann|CLI)(/|\.hpp)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def includes(path, root):
    for number, text in project.lines(path, root):
        match = INCLUDE.match(text)
        if match:
            yield number, match[1], '"' in text


def within(folder, path):
    return path == folder or path.startswith(folder + "/")


def library_complaint(where, header):
    for pattern, folders in LIBRARIES:
        if re.match(pattern, header) and not any(within(folder, where) for folder in folders):
            return f"{header} belongs in {' and '.join(folders) or 'tools'} only"
    return None


def source_complaint(where, header, quoted, root):
    """Why a file in folder `where` of src/ may not include `header`, or None."""
    top = where.split("/")[0]
    if (root / "src" / header).is_file():
        target = str(pathlib.PurePosixPath(header).parent)
        target_top = target.split("/")[0]
        if target_top != top and target_top not in ALLOWED[top]:
            return f"{top} may not include {target_top} ({header})"
        if target_top != top and "/" in target:
            return f"{header} is an implementation; only {target_top} itself may include it"
        if target_top == top and "/" in target and "/" in where and not within(target, where):
            return f"{where} may not include its sibling {target} ({header})"
        return None
    if (root / "include" / header).is_file():
        if header not in VOCABULARY and top not in FACADES:
            return f"{top} may not include the facade {header}"
        return None
    if quoted:
        return f"{header} is neither under src/ nor under include/"
    return library_complaint(where, header)


def public_complaint(header, root):
    if (root / "src" / header).is_file():
        return f"a public header may not include {header} of src/"
    if THIRD_PARTY.match(header) or any(re.match(pattern, header) for pattern, _ in LIBRARIES):
        return f"a public header may not include {header}: its users need not have it"
    return None


def complaints(root=project.ROOT):
    found = []
    for path in project.files(root):
        if path.suffix not in (".h", ".cc", ".c"):
            continue
        if path.parts[0] == "src" and len(path.parts) > 2 and path.parts[1] not in ALLOWED:
            found.append(f"{path}: src/{path.parts[1]} has no row in include_directions.py")
            continue
        for number, header, quoted in includes(path, root):
            reason = None
            if path.parts[0] == "src":
                where = path.parent.relative_to("src").as_posix()
                reason = source_complaint(where, header, quoted, root)
            elif path.parts[0] == "include":
                reason = public_complaint(header, root)
            if reason:
                found.append(f"{path}:{number}: {reason}")
    return found


if __name__ == "__main__":
    project.report("include_directions", complaints())
