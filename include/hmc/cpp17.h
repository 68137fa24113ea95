#pragma once

// First in every header that needs it, so that this sentence is the first that a compiler prints.
#if __cplusplus < 201703L
#error "HMC's Node and its kin need C++17: compile with -std=c++17. <hmc.h> alone needs C++14."
#endif
