"""Packs a wheel and a source archive, with what they say about themselves."""

import base64
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

ENTRY_POINTS = "[console_scripts]\nhmc = hmc.__main__:main\n"
COMMIT = "COMMIT"  # a file of the source archive, where git is not there to ask
# The same archive of the same files, whenever it is packed.
NO_DATE = (1980, 1, 1, 0, 0, 0)


def version():
    return re.search(r"project\(hmc VERSION ([\d.]+)", read("CMakeLists.txt"))[1]


def python_tag():
    """For example cp311; with a t where the interpreter has no GIL."""
    gil = "" if not sysconfig.get_config_var("Py_GIL_DISABLED") else "t"
    return "cp{}{}{}".format(sys.version_info[0], sys.version_info[1], gil)


def wheel_tag():
    return "{}-{}-{}".format(python_tag().rstrip("t"), python_tag(), platform_tag())


def platform_tag():
    """For example linux_x86_64."""
    return re.sub(r"[-.]", "_", sysconfig.get_platform())


def metadata():
    template = read("python/build_backend/metadata.txt")
    return template.format(version=version(), readme=without_relative_links(read("README.md")))


def without_relative_links(markdown):
    """A wheel's description is shown where the repository's files are not: only the words of links
    to them stay. The project names no address that they could lead to instead."""
    return re.sub(r"\[([^\]]*)\]\((?!\w+:)[^)]*\)", r"\1", markdown)


def commit():
    """What these files are, such as "commit 0123456789ab with changes", or nothing."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return read(COMMIT).strip() if os.path.exists(os.path.join(ROOT, COMMIT)) else ""
    try:
        name = _git(ROOT, "rev-parse", "--short=12", "HEAD").strip()
        return "commit " + name + (" with changes" if _git(ROOT, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""  # no git, a folder that git does not trust, or no commit yet


def note_origin(kind, folder):
    """Leaves what `hmc info` says about where it was installed from (tools/hmc/info/origin.cc)."""
    os.makedirs(os.path.join(folder, "share/hmc"), exist_ok=True)
    with open(os.path.join(folder, "share/hmc/installed"), "w", encoding="utf-8") as file:
        file.write(" of ".join(filter(None, [kind, commit()])) + "\n")


def write_dist_info(folder):
    """The part of a wheel that is known before anything is compiled."""
    name = "hmc-{}.dist-info".format(version())
    os.makedirs(os.path.join(folder, name))
    for file, text in _dist_info().items():
        with open(os.path.join(folder, name, file), "w", encoding="utf-8") as out:
            out.write(text)
    return name


def write_wheel(tree, folder, more_texts=None):
    """Packs the files below `tree`; returns the wheel's name."""
    return pack(tree, folder, "hmc", wheel_tag(), dict(_dist_info(), **(more_texts or {})))


def pack(tree, folder, package, tag, dist_info):
    """A wheel of the files below `tree` and of the texts in `dist_info`, by their names."""
    name = "{}-{}-{}.whl".format(package, version(), tag)
    info = "{}-{}.dist-info/".format(package, version())
    record = ""
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in _walk(tree):
            with open(os.path.join(tree, path), "rb") as file:
                data = file.read()
            record += _add(wheel, path, data, os.access(os.path.join(tree, path), os.X_OK))
        for file, text in dist_info.items():
            record += _add(wheel, info + file, text.encode())
        _add(wheel, info + "RECORD", (record + info + "RECORD,,\n").encode())
    return name


def write_sdist(folder):
    """Packs the project's files as they are; returns the archive's name."""
    name = "hmc-{}".format(version())
    path = os.path.join(folder, name + ".tar.gz")
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as sdist:
        for file in source_files():
            sdist.add(os.path.join(ROOT, file), name + "/" + file, recursive=False)
        for file, text in {"PKG-INFO": metadata(), COMMIT: commit()}.items():
            about = tarfile.TarInfo(name + "/" + file)
            about.size = len(text.encode())
            sdist.addfile(about, io.BytesIO(text.encode()))
    return name + ".tar.gz"


def source_files(root=ROOT):
    """What git tracks or would track; without git, everything but what a build made."""
    if os.path.exists(os.path.join(root, ".git")):
        try:
            names = _git(root, "ls-files", "-co", "--exclude-standard", "-z")
            return sorted(n for n in names.split("\0") if os.path.isfile(os.path.join(root, n)))
        except (OSError, subprocess.CalledProcessError):
            pass  # no git, or a folder that git does not trust
    return [path for path in _walk(root) if path not in ("PKG-INFO", COMMIT)]


def _git(root, *arguments):
    return subprocess.run(["git", "-C", root, *arguments], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def _walk(root):
    """The files below a folder, without those that only a build leaves there."""
    found = []
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [n for n in folders if not n.startswith((".", "build", "dist"))]
        folders[:] = [n for n in folders if n != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def about_wheel(tag):
    return "Wheel-Version: 1.0\nGenerator: hmc\nRoot-Is-Purelib: false\nTag: {}\n".format(tag)


def _dist_info():
    return {"METADATA": metadata(), "WHEEL": about_wheel(wheel_tag()),
            "entry_points.txt": ENTRY_POINTS, "LICENSE": read("LICENSE")}


def _add(wheel, path, data, executable=False):
    """Adds a file and returns its line of RECORD."""
    entry = zipfile.ZipInfo(path, NO_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    wheel.writestr(entry, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return "{},sha256={},{}\n".format(path, digest, len(data))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()
