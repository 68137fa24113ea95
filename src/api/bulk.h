#pragma once

#include <cstddef>

#include "api/connections.h"
#include "node/local_memory.h"

namespace hmc {

// sendDataTo() and recvDataFrom(): any memory to any memory, in chunks through both sides' buffers.
// The lower half of a buffer receives, the upper half sends, so that both directions can run at
// once; each half is two slots, so that one is filled while the other is emptied. The receiver
// grants a slot only after it has copied it out. Either side may give up at any time: the next call
// starts afresh, and a sender that is under way starts again for a receiver that came anew.
Status sendBulk(Connection& connection, const LocalMemory& buffer, const Region& from,
                Deadline deadline);
Result<size_t> receiveBulk(Connection& connection, const LocalMemory& buffer, const Region& into,
                           Deadline deadline);

}  // namespace hmc
