#pragma once

#include <chrono>
#include <string>

#include "hmc/result.h"

namespace hmc::bench {

// What one run of ucx_perftest found out about one message, in nanoseconds.
struct UcxAnswer {
  double median = 0;
  double mean = 0;  // of the whole run, waiting included
};

// From the text that `ucx_perftest -f -v` prints: a line of column names, a line of numbers, and
// perhaps warnings around them.
Result<UcxAnswer> parseUcx(const std::string& printed);

// Nanoseconds that ucx_perftest takes per message of that size over tcp, streamed.
Result<double> ucxTcpSend(size_t bytes, std::chrono::milliseconds timeout);

// "1.13.1" from what `ucx_info -v` prints; empty when it is not there.
std::string parseUcxVersion(const std::string& printed);

}  // namespace hmc::bench
