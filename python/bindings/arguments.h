#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "hmc/access.h"
#include "hmc/device.h"
#include "hmc/node.h"

// What Python callers pass, as the core's types. Bad values raise InvalidArgument or OutOfRange.
namespace hmc::python {

Timeout timeoutFrom(double seconds);
std::chrono::milliseconds millisecondsFrom(double seconds, const char* what);
Access accessFrom(const std::string& word);  // "r", "rw"
const char* accessWord(Access access);
// "cpu", "cuda:1", or an object that str() turns into one of these; a kind alone is its first
// device.
Device deviceFrom(pybind11::handle device);

struct Range {
  size_t offset = 0;
  size_t size = 0;
};
// region[a:b] of that many bytes. Unlike a list, nothing is cut off silently.
Range sliceFrom(pybind11::handle index, size_t size, const std::string& what);

// The blocks that three columns describe: anything with the buffer protocol and integers in it, or
// a sequence of int; `sizes` may be one int. Each lies within the ranges, relative to which its
// offsets are.
std::vector<Block> blocksFrom(pybind11::handle localOffsets, pybind11::handle remoteOffsets,
                              pybind11::handle sizes, Range local, Range remote);

}  // namespace hmc::python
