#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

// The suite that every store joins: see store/store.h for the contract. A store joins with one file
// that defines storeCandidates() and one line in CMakeLists.txt (hmc_store_contract).
namespace hmc::contract {

// A service that clients can be opened on, until it goes.
class StoreService {
 public:
  virtual ~StoreService() = default;
  virtual std::shared_ptr<store::Store> open() = 0;
};

struct StoreCandidate {
  std::string name;
  std::function<std::unique_ptr<StoreService>()> start;
  // Of the values in tests of what does not fit into one message, where that takes long.
  size_t large = store::kLargestValue;
};

// Defined by the program that joins.
std::vector<StoreCandidate> storeCandidates();

class StoreContract : public testing::TestWithParam<StoreCandidate> {
 protected:
  static constexpr std::chrono::seconds kLong{60};
  static constexpr std::chrono::milliseconds kTtl{60000};

  StoreContract() : service(GetParam().start()), store(service->open()), other(service->open()) {}

  // All changes up to the one that `last` is true for.
  static std::vector<std::string> changesUntil(
      store::Watch& watch, const std::function<bool(const store::Change&)>& last);
  // "key=value", "-key" and "."
  static std::string text(const store::Change& change);
  static std::string text(const std::vector<store::Entry>& entries);

  std::unique_ptr<StoreService> service;
  std::shared_ptr<store::Store> store;
  std::shared_ptr<store::Store> other;
};

}  // namespace hmc::contract
