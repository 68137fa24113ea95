#pragma once

#include "hmc/status.h"

namespace hmc {

// Ok when both ends of a unix socket belong to this process's user, by the kernel's word. Both ends
// ask: whoever may write to a folder can listen under any name in it, and an abstract name is free
// for all. To who dialled, the other end is the process that listens.
Status checkSameUser(int socket);

}  // namespace hmc
