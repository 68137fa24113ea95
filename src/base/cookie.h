#pragma once

#include <string>

#include "hmc/result.h"

namespace hmc {

// Bytes that all processes of this user on this host know and nobody else does: the content of a
// file of mode 0600, made by whoever asks first. HMC_COOKIE names the file; else it is
// ~/.config/hmc/cookie, or where the user has no home that it may write to, /tmp/hmc-UID/cookie.
// Empty with HMC_COOKIE=none.
Result<std::string> userCookie();

// The file, for sentences. Empty with HMC_COOKIE=none.
std::string cookiePath();

}  // namespace hmc
