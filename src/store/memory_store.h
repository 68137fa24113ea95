#pragma once

#include <cstdint>
#include <memory>

#include "base/interface.h"
#include "store/store.h"

namespace hmc::store {

// A store inside this process: no server, no thread and no socket. For tests and simulations of
// many clients. Safe from any thread.
class MemoryStore : public Interface {
 public:
  static std::shared_ptr<MemoryStore> create();

  // A client, as a process of its own would have it.
  virtual std::shared_ptr<Store> connect() = 0;
  // As if the client's process had died and its leases were over. Its calls end with disconnected.
  virtual void kill(const std::shared_ptr<Store>& client) = 0;
  // How many a server would have got: calls, and the beginnings of watches.
  virtual uint64_t requests() const = 0;
  // What a server would have sent to watches, keys and values.
  struct Delivered {
    uint64_t changes = 0;
    uint64_t bytes = 0;
  };
  virtual Delivered delivered() const = 0;
};

}  // namespace hmc::store
