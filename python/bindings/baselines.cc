// What `python -m hmc bench --python` compares the package with.
#include <pybind11/pybind11.h>

#include <chrono>
#include <cstring>

#include "errors.h"
#include "regions.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Calls that take what ours take and do nothing.
struct Nothing {};

// Nanoseconds of each of `rounds` puts of all of `local`, without Python.
double putsInCore(const Remote& remote, const Region& local, int rounds) {
  const RemoteRegion& there = *remote.memory;
  const LocalRegion& here = *local.memory;
  Status status;
  const auto start = std::chrono::steady_clock::now();
  withoutGil([&] {
    for (int i = 0; i < rounds && status.ok(); ++i)
      status = there.put(here, local.range.offset, remote.range.offset, local.range.size);
  });
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
  check(status);
  return passed.count() / rounds;
}

// Nanoseconds of copying blocks between two regions of ours, one memcpy each.
double copiesInCore(const Region& to, const Region& from, py::handle toOffsets,
                    py::handle fromOffsets, py::handle sizes) {
  const std::vector<Block> blocks = blocksFrom(fromOffsets, toOffsets, sizes, from.range, to.range);
  auto* const there = static_cast<char*>(to.memory->data());
  const auto* const here = static_cast<const char*>(from.memory->data());
  const auto start = std::chrono::steady_clock::now();
  withoutGil([&] {
    for (const Block& block : blocks)
      std::memcpy(there + block.remoteOffset, here + block.localOffset, block.size);
  });
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
  return passed.count();
}

}  // namespace

void bindBaselines(py::module_& module) {
  py::options plain;
  plain.disable_function_signatures();
  py::class_<Nothing> baseline(module, "Baseline", "What hmc.bench compares the package with.");
  baseline.attr("__module__") = "hmc._core";
  baseline.def(py::init<>(), "__init__(self)\n--\n\n")
      .def(
          "put_remote",
          [](const Nothing&, const std::string&, uint16_t, size_t, size_t, size_t, int) {},
          py::arg("ip"), py::arg("port"), py::arg("local_off"), py::arg("remote_off"),
          py::arg("nbytes"), py::arg("conn"),
          "put_remote(self, ip, port, local_off, remote_off, nbytes, conn)\n--\n\nNothing.")
      .def(
          "put", [](const Nothing&, const Region&, double) {}, py::arg("local"),
          py::arg("timeout") = 30, "put(self, local, timeout=30)\n--\n\nNothing.")
      .def_static("puts", putsInCore, py::arg("remote"), py::arg("local"), py::arg("rounds"),
                  "puts(remote, local, rounds)\n--\n\n"
                  "Nanoseconds of each of `rounds` puts, without Python.")
      .def_static("copies", copiesInCore, py::arg("to"), py::arg("source"), py::arg("to_offsets"),
                  py::arg("source_offsets"), py::arg("sizes"),
                  "copies(to, source, to_offsets, source_offsets, sizes)\n--\n\n"
                  "Nanoseconds of copying blocks between two regions, without Python.");
}

}  // namespace hmc::python
