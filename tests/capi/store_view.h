#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "fakes/must.h"
#include "store/store.h"

namespace hmc::test {

// The store of a test's ranks as another client sees it.
class StoreView {
 public:
  explicit StoreView(const std::string& url) : store_(must(store::openStore(url, {}, kLong))) {}

  std::vector<std::string> keys(const std::string& prefix) {
    std::vector<std::string> all;
    for (const store::Entry& entry : must(store_->list(prefix, kLong))) all.push_back(entry.key);
    return all;
  }
  size_t count(const std::string& prefix, const std::string& end) {
    size_t found = 0;
    for (const std::string& key : keys(prefix))
      found += key.size() >= end.size() && key.ends_with(end) ? 1 : 0;
    return found;
  }
  bool remove(const std::string& key) { return store_->remove(key, kLong).ok(); }

 private:
  static constexpr std::chrono::seconds kLong{60};

  const std::shared_ptr<store::Store> store_;
};

}  // namespace hmc::test
