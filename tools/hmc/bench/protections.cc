#include <cstdlib>

#include <fmt/core.h>

#include "bench/measure.h"
#include "scoped_variable.h"

namespace hmc::bench {

namespace {

constexpr const char* kTls = "HMC_TLS";
constexpr const char* kIntegrity = "HMC_INTEGRITY";
constexpr const char* kSecret = "HMC_SECRET";

bool isSet(const char* name, const std::string& usual) {
  const char* value = std::getenv(name);
  return value != nullptr && value != usual;
}

}  // namespace

Status measureProtections(Bench& bench) {
  if (isSet(kTls, "off") || isSet(kIntegrity, "false")) {
    return Status(Code::invalidArgument,
                  fmt::format("{} or {} is set: what they cost is measured beside tcp without "
                              "them, so unset both",
                              kTls, kIntegrity));
  }
  Paths paths;
  TOOL_ASSIGN(auto plain, bench.session.path("tcp"));
  paths.push_back(std::move(plain));
  {
    const tool::ScopedVariable checked(kIntegrity, "true");
    TOOL_ASSIGN(auto path, bench.session.path("tcp"));
    paths.push_back(std::move(path));
  }
  // A server that demands TLS is another one.
  std::unique_ptr<Session> encrypted;
  {
    const char* known = std::getenv(kSecret);
    const tool::ScopedVariable tls(kTls, "required");
    const tool::ScopedVariable secret(kSecret,
                                      known ? known : "known to the two processes of a benchmark");
    TOOL_ASSIGN(encrypted, Session::open({"", bench.session.server().bytes, {}, {}}));
    TOOL_ASSIGN(auto path, encrypted->path("tcp"));
    paths.push_back(std::move(path));
  }
  for (bool put : {true, false}) {
    for (size_t bytes : bench.plan.sizes) {
      bench.step(
          fmt::format("{} of {} bytes, plain, checked and encrypted", put ? "put" : "get", bytes));
      TOOL_ASSIGN(const Samples times, inTurns(paths, put, bytes, bench.plan.time));
      for (size_t i = 1; i < paths.size(); ++i) {
        bench.run.measurements.push_back({.section = "protection",
                                          .what = put ? "put" : "get",
                                          .path = paths[i]->remote.path(),
                                          .bytes = bytes,
                                          .value = times[i],
                                          .ceiling = Ceiling{"plain tcp", times[0]}});
      }
    }
  }
  return Status();
}

}  // namespace hmc::bench
