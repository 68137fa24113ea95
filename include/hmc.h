#pragma once

// Everything that the documentation names, from C++14 on: Memory, ConnBuffer, Communicator,
// CtrlSocketManager. The modern API is in hmc/node.h and needs C++17.

#include "hmc/cpp14.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hmc/communicator.h"
#include "hmc/conn_buffer.h"
#include "hmc/conn_type.h"
#include "hmc/ctrl_socket_manager.h"
#include "hmc/memory.h"
#include "hmc/status.h"
