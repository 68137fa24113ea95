#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hmc::store::etcd {

std::string base64(std::string_view bytes);
// None when it is not what base64() makes.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace hmc::store::etcd
