#pragma once

#include <string>
#include <vector>

#include "api/settings.h"
#include "hmc/conn_buffer.h"
#include "hmc/conn_type.h"
#include "hmc/memory.h"
#include "node/facade.h"
#include "node/node_impl.h"

// Between the types of the documented classes and ours.

namespace hmc {

// What a documented class returns for a Status; it goes to lastStatus(), which a SUCCESS leaves
// alone. Only `unsupported`, `notFound` and `deadlineExceeded` have a value of their own,
// the rest is ERROR.
status_t report(const Status& status);

// The same with the value chosen by the caller, for the places where the documentation names one
// (INVALID_CONFIG for a connection type that does not exist). An ok Status is SUCCESS anyway.
status_t report(const Status& status, status_t as);

// What MemoryType::DEFAULT stands for on this machine; any other type is itself. An accelerator
// means one with a device: asking may load vendors' runtimes.
MemoryType resolved(MemoryType type);

// The device behind the pair that the documented classes use. The number of CPU memory is ignored.
// invalidArgument when the value is none of MemoryType.
Result<Device> deviceFor(int deviceId, MemoryType type);

MemoryType memoryTypeOf(DeviceKind kind);

// The buffer's memory, as the rest of the library sees it.
Region regionOf(const ConnBuffer& buffer);

const char* connTypeName(ConnType type);

// The transports to try for a ConnType, best first; empty means all. `substitute` is set when the
// one that was asked for is not there and others will serve. unsupported under strict settings,
// invalidArgument when the value is none of ConnType.
struct TransportsFor {
  std::vector<std::string> names;
  std::string substituteFor;  // "RDMA (this host has no ...)"
};
Result<TransportsFor> transportsFor(ConnType type, const NodeImpl& node, const Settings& settings);

}  // namespace hmc
