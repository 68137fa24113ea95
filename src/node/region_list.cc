#include "node/region_list.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "base/text.h"
#include "node/descriptions.h"

namespace hmc {

namespace {

constexpr size_t kLongestType = 64;
constexpr size_t kMostDimensions = 64;

ArrayType readType(Reader& in) {
  ArrayType type;
  type.dtype = printable(in.string());
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) type.shape.push_back(in.u64());
  return type;
}

}  // namespace

Status checkType(const ArrayType& type) {
  const bool plain = std::all_of(type.dtype.begin(), type.dtype.end(),
                                 [](char letter) { return letter > ' ' && letter <= '~'; });
  if (!plain || type.dtype.size() > kLongestType) {
    return error(Code::invalidArgument,
                 "a region's dtype is \"{}\": pass a name such as \"float32\", {} letters at most",
                 printable(type.dtype), kLongestType);
  }
  if (type.shape.size() <= kMostDimensions) return Status();
  return error(Code::invalidArgument, "a region's shape has {} dimensions: {} are the most",
               type.shape.size(), kMostDimensions);
}

std::string RegionQuestion::encode() const {
  return Writer().u8(static_cast<uint8_t>(which)).string(name).take();
}

Result<RegionQuestion> RegionQuestion::decode(std::string_view bytes) {
  Reader in(bytes);
  RegionQuestion question;
  question.which = in.u8() == 0 ? Which::named : Which::after;
  question.name = in.string();
  HMC_TRY(in.finish("the question about regions"));
  return question;
}

std::string encodeRegions(const std::vector<RegionInfo>& regions) {
  Writer out;
  out.u32(static_cast<uint32_t>(regions.size()));
  for (const auto& region : regions) {
    out.string(region.name).u64(region.size).string(deviceKindName(region.device.kind));
    out.u32(static_cast<uint32_t>(region.device.index)).u8(static_cast<uint8_t>(region.access));
    out.string(region.type.dtype).u32(static_cast<uint32_t>(region.type.shape.size()));
    for (const uint64_t length : region.type.shape) out.u64(length);
  }
  return out.take();
}

Result<std::vector<RegionInfo>> decodeRegions(std::string_view bytes) {
  Reader in(bytes);
  std::vector<RegionInfo> regions;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) {
    RegionInfo region;
    region.name = in.string();
    region.size = in.u64();
    const std::string kind = in.string();
    region.device.index = static_cast<int>(in.u32());
    region.access =
        in.u8() == static_cast<uint8_t>(Access::readWrite) ? Access::readWrite : Access::read;
    region.type = readType(in);
    if (in.failed()) break;
    HMC_ASSIGN(region.device.kind, kindFromName(kind));
    HMC_TRY(checkType(region.type));
    regions.push_back(std::move(region));
  }
  HMC_TRY(in.finish("the peer's list of its regions"));
  if (regions.size() <= kMostListed) return regions;
  return error(Code::failed, "the peer lists {} regions at once, {} are the most", regions.size(),
               kMostListed);
}

}  // namespace hmc
