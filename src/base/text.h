#pragma once

#include <string>
#include <string_view>

namespace hmc {

// Words of a peer, for sentences, logs and Python: valid UTF-8 without control characters. What is
// neither becomes a question mark.
std::string printable(std::string_view words);

}  // namespace hmc
