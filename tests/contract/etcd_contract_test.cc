#include <fmt/core.h>

#include "contract/store_contract.h"
#include "etcd/etcd_server.h"
#include "fakes/must.h"

namespace hmc::contract {

namespace {

// Each test has a prefix of its own in one etcd.
class InEtcd final : public StoreService {
 public:
  std::shared_ptr<store::Store> open() override {
    return test::must(store::openStore(url_, {}, std::chrono::seconds(60)));
  }

 private:
  static test::EtcdServer& server() {
    static test::EtcdServer one;
    return one;
  }
  const std::string url_ = server().urlOfItsOwn();
};

}  // namespace

std::vector<StoreCandidate> storeCandidates() {
  // It writes all values to disk, and has no such messages.
  constexpr size_t kLarge = size_t{256} << 10;
  if (test::EtcdServer::isInstalled()) {
    return {{"etcd", [] { return std::make_unique<InEtcd>(); }, kLarge}};
  }
  fmt::print("skipped: {}\n", test::EtcdServer::kMissing);
  return {};
}

}  // namespace hmc::contract
