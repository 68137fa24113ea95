#include "agent/record.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"

namespace hmc::agent {

std::string Record::encode() const {
  Writer out;
  out.string(address).string(incarnation);
  return out.take();
}

Result<Record> Record::decode(std::string_view bytes) {
  Reader in(bytes);
  Record record;
  record.address = in.string();
  record.incarnation = in.string();
  HMC_TRY(in.finish("the record of an engine"));
  return record;
}

std::string encode(const std::vector<Registered>& memory) {
  Writer out;
  for (const Registered& one : memory) out.u64(one.begin).u64(one.size).u64(one.number);
  return out.take();
}

Result<std::vector<Registered>> decodeMemory(std::string_view bytes) {
  Reader in(bytes);
  std::vector<Registered> memory;
  memory.reserve(bytes.size() / sizeof(Registered));
  while (in.left() > 0) {
    Registered one{};
    one.begin = in.u64();
    one.size = in.u64();
    one.number = in.u64();
    if (one.size > UINT64_MAX - one.begin) {
      return error(Code::invalidArgument, "an engine registered {} bytes at {:#x}, which cannot be",
                   one.size, one.begin);
    }
    memory.push_back(one);
  }
  HMC_TRY(in.finish("the memory of an engine"));
  return memory;
}

Status checkId(const std::string& id) {
  constexpr size_t kLongest = 255;
  const bool printable =
      std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
  if (!id.empty() && id.size() <= kLongest && printable) return Status();
  return error(Code::invalidArgument,
               "the id \"{}\" cannot be: 1 to {} printable characters without spaces and slashes, "
               "for example 10.0.0.1:15000",
               id, kLongest);
}

std::string keyPrefix(const std::string& id) {
  return "trans/" + id + "/";
}

std::string recordKey(const std::string& id) {
  return keyPrefix(id) + "engine";
}

std::string memoryPrefix(const std::string& id, const std::string& incarnation) {
  return keyPrefix(id) + incarnation + "/";
}

std::string memoryKey(const std::string& id, const std::string& incarnation, uint64_t call) {
  return memoryPrefix(id, incarnation) + std::to_string(call);
}

std::string regionName(const std::string& incarnation, uint64_t number) {
  return incarnation + "." + std::to_string(number);
}

}  // namespace hmc::agent
