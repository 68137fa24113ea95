"""Builds the hmc wheel: the hooks that pip and `python -m build` call (PEP 517 and 660).

cmake compiles and lays out what a wheel holds; `archive` packs it. Nothing but the standard library
is imported, so that a build needs no network where the distribution's packages are installed.
"""

import os
import tempfile

from . import archive, cmake, needs


def get_requires_for_build_wheel(config_settings=None):
    return needs.from_pip()


def get_requires_for_build_editable(config_settings=None):
    return needs.from_pip()


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return archive.write_dist_info(metadata_directory)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    # A folder beside `build`: a compiler cache then sees the same relative paths as in a plain build.
    with tempfile.TemporaryDirectory(prefix="build-wheel-", dir=archive.ROOT) as build, \
            tempfile.TemporaryDirectory(prefix="hmc-wheel-") as tree:
        cmake.build(build)
        cmake.install(build, tree)
        archive.note_origin("wheel", os.path.join(tree, "hmc"))
        return archive.write_wheel(tree, wheel_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that points into a build folder, where the package consists of links to the sources.

    What is edited in Python is what runs; after editing C++, install again.
    """
    build = os.path.join(archive.ROOT, "build", "editable-" + archive.python_tag())
    cmake.build(build)
    archive.note_origin("editable install", build)
    with tempfile.TemporaryDirectory(prefix="hmc-wheel-") as tree:
        with open(os.path.join(tree, "hmc-editable.pth"), "w") as file:
            file.write(os.path.join(build, "python") + "\n")
        return archive.write_wheel(tree, wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return archive.write_sdist(sdist_directory)
