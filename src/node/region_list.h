#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/region_info.h"
#include "hmc/result.h"

namespace hmc {

// What one peer asks another about the memory that it can open (kListRegions).
struct RegionQuestion {
  enum class Which : uint8_t { named = 0, after = 1 };
  // A region of that name, or those whose names follow it.
  Which which = Which::named;
  std::string name;

  std::string encode() const;
  static Result<RegionQuestion> decode(std::string_view bytes);
};

// The answer: regions in the order of their names, kMostListed at most.
inline constexpr size_t kMostListed = 1000;
std::string encodeRegions(const std::vector<RegionInfo>& regions);
Result<std::vector<RegionInfo>> decodeRegions(std::string_view bytes);

// Ok when peers can be told of it.
Status checkType(const ArrayType& type);

}  // namespace hmc
