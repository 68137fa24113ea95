#pragma once

#include <string>

#include "bench/run.h"

// A Run as text.
namespace hmc::bench {

// For a terminal: the header, a table per section, the paths, the notes, the targets.
std::string tableText(const Run& run, bool colour);
// Whether what is written to `fd` may be coloured: it is a terminal, and NO_COLOR is not set.
bool wantsColour(int fd);

// Later versions may add columns at the end of CSV, and fields to JSON; these keep their names and
// meaning.

// Everything in a Run as one JSON object, in this order:
//   header        object: name -> text, in the order of the terminal's header
//   measurements  array of {section, who, what, path, bytes, unit ("ns" or "GB/s"),
//                 value (the median), p99, p999, ceiling: {name, value} or null,
//                 percent_of_ceiling}
//   targets       array of {what, measured, against, ratio, limit, met}
//   paths         array of {what, bytes, times: object transport -> nanoseconds, taken, quickest,
//                 factor (how many times as fast that is), well_chosen}
//   notes         array of sentences
// What was not measured is null.
std::string jsonText(const Run& run);

// The same as CSV (RFC 4180), one record per line. The first column says what it is:
//   header       name, text
//   measurement  the fields of JSON, with ceiling as ceiling and ceiling_value
//   target       what, text (what was measured), against, ratio, limit, met
//   note         text
// Columns that a record does not have, and values that were not measured, are empty.
std::string csvText(const Run& run);

}  // namespace hmc::bench
