#pragma once

// First in every header of the documented classes, so that this sentence is the first that a
// compiler prints.
#if __cplusplus < 201402L
#error "HMC needs C++14: compile with -std=c++14 or newer; Node and its kin need -std=c++17."
#endif
