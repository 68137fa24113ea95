#pragma once

#include <string>

#include "bench/run.h"

namespace hmc::bench {

// Everything in a Run as CSV (RFC 4180), one record per line. The first column says what it is:
//   header       name, text
//   measurement  section, who, what, path, bytes, unit ("ns" or "GB/s"), value (the median), p99,
//                p999, ceiling, ceiling_value (in the same unit), percent_of_ceiling
//   target       what, text (what was measured), against, ratio, limit, met ("true" or "false")
//   note         text
// Columns that a record does not have, and values that were not measured, are empty. Later versions
// may add columns at the end; these keep their names and meaning.
std::string csvText(const Run& run);

}  // namespace hmc::bench
