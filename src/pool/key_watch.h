#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "hmc/result.h"
#include "store/store.h"

namespace hmc::pool {

// Calls a function when a key is there for the first time, on a thread of its own. Destroying it
// waits for the function, except where the function itself destroys it.
class KeyWatch {
 public:
  using Found = std::function<void(const std::string& value)>;
  static Result<std::unique_ptr<KeyWatch>> start(store::Store& store, const std::string& key,
                                                 Found found);
  ~KeyWatch();
  KeyWatch(const KeyWatch&) = delete;
  KeyWatch& operator=(const KeyWatch&) = delete;

 private:
  explicit KeyWatch(std::jthread thread) : thread_(std::move(thread)) {}

  std::jthread thread_;
};

}  // namespace hmc::pool
