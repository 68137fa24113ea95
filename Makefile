# The project's commands. Each build has its own folder under build/; plain cmake works as well.

SETUP ?= tools/setup.sh
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
JOBS := $(shell nproc)

comma := ,
configure = cmake -S . -B build/$(1) -G Ninja $(CACHE) $(2) $(CMAKE_FLAGS)
CACHE := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
DEBUG := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHMC_BUILD_TESTS=ON
# Sanitized code is slow enough: it gets line numbers, not the rest of the debug information.
SANITIZED := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DHMC_BUILD_TESTS=ON

.PHONY: help setup build build-dev build-asan build-tsan demo test quick asan tsan check install clean

help:
	@echo 'make demo     install what is missing, build, and show two processes moving memory'
	@echo 'make test     everything: all tests, then all tests with address and thread sanitizers'
	@echo 'make quick    all tests but the slow ones, without sanitizers'
	@echo 'make asan     all tests with the address and undefined-behaviour sanitizers'
	@echo 'make tsan     all tests with the thread sanitizer'
	@echo 'make check    format, clang-tidy and the house rules'
	@echo 'make build    the library and the hmc command, into build/release'
	@echo 'make install  the same, into PREFIX (now $(PREFIX))'
	@echo 'make setup    install what the build needs from the distribution (SETUP=true: never)'
	@echo 'make clean    remove what the above made'

setup:
	@$(SETUP)

build: setup
	$(call configure,release,-DCMAKE_BUILD_TYPE=Release)
	cmake --build build/release -j $(JOBS)

build-dev: setup
	$(call configure,dev,$(DEBUG))
	cmake --build build/dev -j $(JOBS)

build-asan: setup
	$(call configure,asan,$(SANITIZED) -DHMC_SANITIZE=address$(comma)undefined)
	cmake --build build/asan -j $(JOBS)

build-tsan: setup
	$(call configure,tsan,$(SANITIZED) -DHMC_SANITIZE=thread)
	cmake --build build/tsan -j $(JOBS)

demo: build
	build/release/tools/hmc demo

test: build-dev build-asan build-tsan
	tools/run_tests.py build/dev build/asan build/tsan

quick: build-dev
	tools/run_tests.py --without slow build/dev

asan: build-asan
	tools/run_tests.py build/asan

tsan: build-tsan
	tools/run_tests.py build/tsan

# clang-tidy needs to know how files are compiled, not that they were.
check:
	@$(SETUP) checks
	$(call configure,dev,$(DEBUG))
	tools/checks/all.sh build/dev

install: build
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build/release build/dev build/asan build/tsan
