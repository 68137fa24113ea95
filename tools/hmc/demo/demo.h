#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hmc/node.h"
#include "program.h"

namespace hmc::tool {

// Two processes exchange bytes over every transport that works here, and a table says how it went.
// The exit status: 0 when at least one transport worked and none failed.
int runDemo(size_t bytes);

// The other process: serves one peer over one transport until it is ended.
int serveDemo(const std::string& transport, size_t bytes);

// The other process, and a Node of ours that has its region open.
struct DemoPair {
  OtherProcess process;
  Node node;
  LocalRegion local;
  Peer server;
  RemoteRegion remote;
};
// Over that transport: `bytes` there, `localBytes` here.
Result<DemoPair> startDemoPair(const std::string& transport, size_t bytes, size_t localBytes);

// What the two agree on.
inline constexpr const char* kDemoRegion = "demo";
inline constexpr char kCheckRequest[] = "check";
void fillPattern(void* data, size_t bytes, uint64_t seed);
uint64_t checksum(const void* data, size_t bytes);

}  // namespace hmc::tool
