#pragma once

#include <cstdint>
#include <string>

namespace hmc::tool {

struct LitmusOptions {
  uint64_t rounds = 100000;
  std::string transport;  // empty: all that work here
  std::string
      connect;  // the address of another host's `hmc litmus --listen`; empty: start one here
};

// Two processes try whether a signal ever arrives before the bytes that it is about, and a table
// says how it went. The exit status: 0 when no bytes were stale and nothing failed.
int runLitmus(const LitmusOptions& options);

// The other process: serves until it is ended.
int serveLitmus(const std::string& address);

}  // namespace hmc::tool
