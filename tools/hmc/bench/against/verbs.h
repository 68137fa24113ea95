#pragma once

#include <string>

#include "bench/figure.h"
#include "hmc/result.h"

namespace hmc::bench {

// GB/s from what `ib_write_bw --report_gbits` printed for one size.
Result<double> parseWriteBandwidth(const std::string& printed);

// Nanoseconds from what `ib_write_lat` printed for one size: the typical time as the median.
Result<Percentiles> parseWriteLatency(const std::string& printed);

}  // namespace hmc::bench
