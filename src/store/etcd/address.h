#pragma once

#include <string>
#include <vector>

#include "hmc/result.h"

namespace hmc::store::etcd {

// etcd://10.0.0.1:2379,10.0.0.2:2379/team?user=pool
// etcds://a.example:2379/?ca=/etc/ca.pem&cert=/etc/me.pem&key=/etc/me.key
//
// Members, each with port 2379 unless it says otherwise; what comes before our keys in a store that
// others use as well ("hmc" unless it says otherwise); and settings, which are taken as they are
// written. etcds:// is TLS: the members' certificates are checked against `ca`, or against the
// system's authorities.
struct Address {
  // invalidArgument says which part does not fit.
  static Result<Address> parse(const std::string& url);

  std::vector<std::string> members;  // "https://10.0.0.1:2379"
  std::string prefix;                // of all keys, with the slash at its end
  bool tls = false;
  std::string ca;    // a file, or empty
  std::string cert;  // files of ours, or both empty
  std::string key;
  std::string user;  // empty: none
};

}  // namespace hmc::store::etcd
