#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/random.h"
#include "transport/ipc/key.h"

namespace hmc::ipc {

// What peers are told about memory of ours, and the descriptors that they get with it.
struct Offered {
  Description what;
  std::vector<Fd> share;
};

// The memory of one transport that peers may ask about, by the tokens of its keys. Safe from any
// thread.
class OfferedMemory {
 public:
  std::string add(Offered memory) {
    std::string token = randomBytes(kTokenSize);
    std::lock_guard lock(mutex_);
    byToken_.emplace(token, std::make_shared<const Offered>(std::move(memory)));
    return token;
  }
  void remove(const std::string& token) {
    std::lock_guard lock(mutex_);
    byToken_.erase(token);
  }
  Result<std::shared_ptr<const Offered>> find(const std::string& token) const {
    std::lock_guard lock(mutex_);
    auto found = byToken_.find(token);
    if (found != byToken_.end()) return found->second;
    return error(Code::notFound, "the peer does not offer that memory any more");
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Offered>> byToken_;  // guarded by mutex_
};

}  // namespace hmc::ipc
