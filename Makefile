# The project's commands. Each build has its own folder under build/; plain cmake works as well.

SETUP ?= tools/setup.sh
PREFIX ?= /usr/local
MINUTES ?= 30
CMAKE_FLAGS ?=
JOBS := $(shell nproc)
# The distribution's, for which setup.sh installs what the tests import.
PYTHON ?= /usr/bin/python3

comma := ,
configure = cmake -S . -B build/$(1) -G Ninja $(CACHE) -DPython3_EXECUTABLE=$(PYTHON) $(2) $(CMAKE_FLAGS)
# The second setting lets ccache take part where headers are precompiled.
CACHE := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER="env;CCACHE_SLOPPINESS=pch_defines$(comma)time_macros;ccache")
# Line numbers are all the debug information that a failure needs, and quick to compile.
# Undefined-behaviour checks triple the time to compile with any optimisation.
RELEASE := -DCMAKE_BUILD_TYPE=Release -DBUILD_PYTHON_MOD=ON
TESTED := -DCMAKE_BUILD_TYPE=Debug -DHMC_BUILD_TESTS=ON -DCMAKE_CXX_FLAGS_DEBUG
DEV := $(TESTED)="-O1 -g1" -DBUILD_PYTHON_MOD=ON
# Clang compiles with these checks in half the time that GCC takes. Looked for after the set-up.
clang = $(if $(shell echo 'int main() {}' | clang++ -fsanitize=$(1) -x c++ - -o /dev/null 2>/dev/null && echo yes),\
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
sanitized = $(TESTED)=$(2) -DHMC_SANITIZE=$(1) $(call clang,$(1))
ASAN = $(call sanitized,address$(comma)undefined,"-O0 -g1")
# Without UCX, whose hooks and mappings the sanitizer does not survive every time.
TSAN = $(call sanitized,thread,"-O1 -g1") -DHMC_UCX_INCLUDE=OFF

.PHONY: help setup setup-tests build wheel build-dev build-asan build-tsan demo test test-rdma quick asan tsan soak check docs install clean

help:
	@echo 'make demo       install what is missing, build, and show two processes moving memory'
	@echo 'make test       everything: all tests, then all tests with address and thread sanitizers'
	@echo 'make test-rdma  the RDMA tests, on soft-RoCE in a small virtual machine'
	@echo 'make quick      all tests but the slow ones, without sanitizers'
	@echo 'make asan       all tests with the address and undefined-behaviour sanitizers'
	@echo 'make tsan       all tests with the thread sanitizer'
	@echo 'make soak       four processes under kills, stops and restarts, for MINUTES (now $(MINUTES)); prints a report'
	@echo 'make check      format, clang-tidy and the house rules'
	@echo 'make docs       the documentation as a site, in build/docs/html'
	@echo 'make build      the library and the hmc command, into build/release'
	@echo 'make wheel      wheels that run on other distributions, too, into dist/ (PYTHON: for which Python)'
	@echo 'make install    the same, into PREFIX (now $(PREFIX))'
	@echo 'make setup      install what the build needs from the distribution (SETUP=true: never)'
	@echo 'make clean      remove what the above made'

setup:
	@$(SETUP)

setup-tests:
	@$(SETUP) tests

build: setup
	$(call configure,release,$(RELEASE))
	cmake --build build/release -j $(JOBS)

build-dev: setup-tests
	$(call configure,dev,$(DEV))
	cmake --build build/dev -j $(JOBS)

build-asan: setup
	$(call configure,asan,$(ASAN))
	cmake --build build/asan -j $(JOBS)

build-tsan: setup
	$(call configure,tsan,$(TSAN))
	cmake --build build/tsan -j $(JOBS)

# The demo's own programs, not all of them.
demo: setup
	$(call configure,release,$(RELEASE))
	cmake --build build/release -j $(JOBS) --target hmc_command hmc_core
	build/release/tools/hmc demo
	PYTHONPATH=build/release/python $(PYTHON) examples/python/hello.py

# The sanitizers' builds are made beside the tests of the build before them.
test: build-dev
	tools/run_tests.py --make make build/dev build/asan build/tsan

test-rdma: build-dev
	@$(SETUP) rdma
	tests/rdma_vm/run.py build/dev

quick: build-dev
	tools/run_tests.py --without slow build/dev

asan: build-asan
	tools/run_tests.py build/asan

tsan: build-tsan
	tools/run_tests.py build/tsan

soak: setup
	$(call configure,release,$(RELEASE))
	cmake --build build/release -j $(JOBS) --target hmc_core
	PYTHONPATH=build/release/python $(PYTHON) tests/soak/soak.py --minutes $(MINUTES)

# clang-tidy needs to know how files are compiled, not that they were. In a folder of its own, so that
# it can run beside the tests.
check:
	@$(SETUP) checks
	$(call configure,check,$(DEV))
	tools/checks/all.sh build/check

# Autodoc reads the docstrings of the compiled module. All pages are read again, since a warning is said only once.
docs:
	@$(SETUP) docs
	$(call configure,release,$(RELEASE))
	cmake --build build/release -j $(JOBS) --target hmc_core
	mkdir -p build/docs/doxygen
	doxygen docs/site/Doxyfile
	PYTHONPATH=build/release/python $(PYTHON) -m sphinx -q -E -W --keep-going -c docs/site \
	  -d build/docs/doctrees docs build/docs/html
	@echo 'the site is in build/docs/html/index.html'

# With the package index's auditwheel where the machine has none.
wheel:
	@$(SETUP) wheel
	PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 CMAKE_ARGS='$(CACHE) $(CMAKE_FLAGS)' \
	  $(PYTHON) -m build_backend.manylinux dist

install: build
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build/release build/dev build/asan build/tsan build/check build/rdma-vm build/docs build/wheel-* build/editable-* dist
