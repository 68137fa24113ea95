#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "hmc/access.h"
#include "hmc/device.h"
#include "hmc/node.h"

// Converts Python arguments to the core's types. Bad values raise InvalidArgument or OutOfRange.
namespace hmc::python {

enum class Direction { put, get };

// Seconds; None never ends.
Timeout timeoutFrom(pybind11::handle seconds);
std::chrono::milliseconds millisecondsFrom(double seconds, const char* what);
Access accessFrom(const std::string& word);  // "r", "rw"
const char* accessWord(Access access);
// "cpu", "cuda:1", or an object that str() turns into one of these; a kind alone is its first
// device.
Device deviceFrom(pybind11::handle device);

// The bytes of a buffer, copied.
std::string bytesFrom(const pybind11::buffer& data);

// A number of bytes, or of anything else; `what` names it in errors.
size_t sizeFrom(pybind11::handle number, const char* what);

// Several names, or one as a str alone; none where it is None. `what` names it in errors.
using Names = std::optional<std::vector<std::string>>;
Names namesFrom(pybind11::handle given, const char* what);

// tls=, certificates=, tls_key_password=, tls_crl= and tls_exceptions= of a constructor.
TlsOptions tlsFrom(const std::optional<std::string>& mode, pybind11::handle certificates,
                   const std::string& keyPassword, pybind11::handle crl,
                   pybind11::handle exceptions);

struct Range {
  size_t offset = 0;
  size_t size = 0;
};
// region[a:b] of that many bytes. Unlike a list's, a slice that passes the end is an error.
Range sliceFrom(pybind11::handle index, size_t size, const std::string& what);

// Blocks from three columns: anything with the buffer protocol and integers in it, or a sequence of
// int; `sizes` may be one int. Offsets are relative to the ranges, which hold every block.
std::vector<Block> blocksFrom(pybind11::handle localOffsets, pybind11::handle remoteOffsets,
                              pybind11::handle sizes, Range local, Range remote);

}  // namespace hmc::python
