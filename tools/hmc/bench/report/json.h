#pragma once

#include <string>

#include "bench/run.h"

namespace hmc::bench {

// Everything in a Run as one JSON object, in this order:
//   header        object: name -> text, in the order of the terminal's header
//   measurements  array of {section, who, what, path, bytes, unit ("ns" or "GB/s"),
//                 value (the median), p99, p999, ceiling: {name, value} or null,
//                 percent_of_ceiling}
//   targets       array of {what, measured, against, ratio, limit, met}
//   paths         array of {what, bytes, times: object transport -> nanoseconds, taken, quickest,
//                 factor (how many times as fast that is), well_chosen}
//   notes         array of sentences
// What was not measured is null. Later versions may add fields; these keep their names and meaning.
std::string jsonText(const Run& run);

}  // namespace hmc::bench
