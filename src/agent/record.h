#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/result.h"

namespace hmc::agent {

// What an agent tells the others through the store. Its keys begin with keyPrefix(); the record
// says which of those with memory are of this incarnation.
struct Record {
  std::string address;      // of its Node's listener
  std::string incarnation;  // random

  std::string encode() const;
  static Result<Record> decode(std::string_view bytes);
};

// Memory that can be opened under regionName().
struct Registered {
  uint64_t begin;
  uint64_t size;
  uint64_t number;  // counts up: of two that begin at one address the higher one is there
};
std::string encode(const std::vector<Registered>& memory);
Result<std::vector<Registered>> decodeMemory(std::string_view bytes);

// An id is part of keys: 1 to 255 printable characters without a slash.
Status checkId(const std::string& id);
std::string keyPrefix(const std::string& id);
std::string recordKey(const std::string& id);
// Of one call that registered memory.
std::string memoryPrefix(const std::string& id, const std::string& incarnation);
std::string memoryKey(const std::string& id, const std::string& incarnation, uint64_t call);
std::string regionName(const std::string& incarnation, uint64_t number);

}  // namespace hmc::agent
