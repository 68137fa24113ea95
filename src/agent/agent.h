#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "agent/range_map.h"
#include "agent/record.h"
#include "agent/remote_agent.h"
#include "hmc/deadline.h"
#include "hmc/node.h"
#include "pool/world.h"

namespace hmc::agent {

struct AgentOptions {
  std::string store;  // its URL
  pool::Serve serve = pool::Serve::no;
  std::string id;  // by which other agents find this one
  Device device;   // of allocate()
  Timeout timeout = kDefaultTimeout;
  pool::Protection protection{};
};

struct Memory {
  void* data;
  size_t size;
};

enum class Direction : uint8_t { write, read };

// Memory here and memory of another agent; there it is an address of that process.
struct TransferPiece {
  void* local;
  uint64_t remote;
  size_t size;
};

// Registers memory by its address and moves bytes to and from memory that other agents have
// registered. Agents find each other through a store, by their ids. Memory can be reached when
// registering it has returned, and no longer when taking it back has. Safe from any thread.
class Agent {
 public:
  // alreadyExists while another process that lives has the id.
  static Result<std::unique_ptr<Agent>> create(pool::Stores& stores, const AgentOptions& options);
  // Takes all memory back.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  const std::string& id() const { return options_.id; }

  // All or none. Registering the same bytes again changes nothing. alreadyExists when memory of
  // another size is registered at an address.
  Status registerMemory(std::span<const Memory> memory);
  // When it returns, no other agent reads or writes it. deadlineExceeded names those that did not
  // confirm it and were disconnected.
  Status deregister(const void* data) { return takeBack(data, /*allocated=*/false); }
  // Memory that is registered and that agents of this host map.
  Result<void*> allocate(size_t size);
  Status release(void* data) { return takeBack(data, /*allocated=*/true); }

  // In any order; returns when all bytes are in place. Bytes of the remote side may lie in several
  // registrations that adjoin.
  Status transfer(Direction direction, const std::string& remote,
                  std::span<const TransferPiece> pieces);
  // The same in the order of the stream where local memory lies on a device that has such; what
  // lies on the host is copied before this returns.
  Status submit(Direction direction, const std::string& remote,
                std::span<const TransferPiece> pieces, void* stream);

 private:
  struct Local {
    std::shared_ptr<const LocalRegion> region;  // none while it is being registered
    uint64_t number;
    uint64_t call;   // that registered it
    bool allocated;  // by us
  };
  // Blocks between one local and one remote memory.
  struct List {
    std::shared_ptr<const LocalRegion> local;
    std::shared_ptr<const RemoteRegion> remote;
    std::vector<Block> blocks;
  };
  using Lists = std::vector<List>;

  Agent(AgentOptions options, std::shared_ptr<pool::OpenStore> store, Node node, Record record,
        std::shared_ptr<store::KeyLease> lease);
  static Status claim(store::Store& store, Node& node, const std::string& id, const Record& record,
                      const std::shared_ptr<store::KeyLease>& lease, Deadline deadline);

  Result<std::vector<Memory>> reserve(std::span<const Memory> memory);
  Status registerReserved(std::span<const Memory> memory);
  void undo(std::span<const Memory> reserved);
  Status announce(std::vector<Local> made);
  Result<Local> takeOut(const void* data, bool allocated);
  Status takeBack(const void* data, bool allocated);

  RemoteAgent& remoteAgent(const std::string& id);
  Result<std::shared_ptr<const LocalRegion>> localAround(const TransferPiece& piece);
  Result<Lists> plan(RemoteAgent& remote, std::span<const TransferPiece> pieces, Deadline deadline);
  Status run(Direction direction, const Lists& lists, Deadline deadline);
  Status enqueue(Direction direction, const List& list, void* stream);
  Status noteEnd(RemoteAgent& remote, const Lists& lists, const Status& outcome);
  void reapSubmitted();

  const AgentOptions options_;
  const std::shared_ptr<pool::OpenStore> store_;
  Node node_;
  const Record record_;
  const std::shared_ptr<store::KeyLease> lease_;  // of all keys of ours

  std::shared_mutex memoryMutex_;
  RangeMap<Local> memory_;                // guarded by memoryMutex_
  std::map<uint64_t, size_t> callSizes_;  // guarded by memoryMutex_: what is left of each call
  uint64_t lastNumber_ = 0;               // guarded by memoryMutex_
  uint64_t lastCall_ = 0;                 // guarded by memoryMutex_

  std::mutex remotesMutex_;
  std::map<std::string, std::unique_ptr<RemoteAgent>> remotes_;  // guarded by remotesMutex_
  std::mutex submittedMutex_;
  std::vector<Ticket> submitted_;  // guarded by submittedMutex_
};

}  // namespace hmc::agent
