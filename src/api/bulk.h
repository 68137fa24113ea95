#pragma once

#include <cstddef>
#include <memory>

#include "api/connections.h"
#include "node/facade.h"
#include "node/node_impl.h"

namespace hmc {

// sendDataTo() and recvDataFrom(): any memory to any memory, in chunks through slots of the
// receiver's buffer. Several chunks are under way at once, so that reading here, the way there and
// copying out over there overlap. The receiver grants a slot again only after it has copied it out.
// Either side may give up at any time: the next call starts afresh, and a sender that is under way
// starts again for a receiver that came anew. Safe from any thread.
class Bulk {
 public:
  Bulk(std::shared_ptr<NodeImpl> node, std::shared_ptr<LocalMemory> buffer)
      : node_(std::move(node)), buffer_(std::move(buffer)) {}

  Status send(Connection& connection, const Region& from, Deadline deadline);
  Result<size_t> receive(Connection& connection, const Region& into, Deadline deadline);

 private:
  Status prepare(const Device& other);
  Result<std::shared_ptr<LocalMemory>> source(const Connection& connection, const Region& from);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<LocalMemory> buffer_;
  DevicePins pins_;  // of buffer_, for the devices that it was used with
};

}  // namespace hmc
