#pragma once

#include "hmc/status.h"

namespace hmc {

// What a documented class returns for a Status; it goes to lastStatus(), which a SUCCESS leaves
// alone. Only `unsupported`, `notFound` and `deadlineExceeded` have a value of their own,
// the rest is ERROR.
status_t report(const Status& status);

// The same with the value chosen by the caller, for the places where the documentation names one
// (INVALID_CONFIG for a connection type that does not exist). An ok Status is SUCCESS anyway.
status_t report(const Status& status, status_t as);

}  // namespace hmc
