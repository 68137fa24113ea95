#include "contract/store_contract.h"

#include <filesystem>

#include "fakes/must.h"
#include "store/memory_store.h"
#include "store/server.h"

namespace hmc::contract {

namespace {

class InMemory final : public StoreService {
 public:
  std::shared_ptr<store::Store> open() override { return memory_->connect(); }

 private:
  const std::shared_ptr<store::MemoryStore> memory_ = store::MemoryStore::create();
};

class Served final : public StoreService {
 public:
  Served(const std::string& address, const std::string& secret, const std::string& data = "")
      : secret_(secret),
        data_(data),
        server_(test::must(store::Server::start(address, {.secret = secret, .data = data}))) {}
  ~Served() override {
    server_.reset();
    if (!data_.empty()) std::filesystem::remove_all(data_);
  }
  std::shared_ptr<store::Store> open() override {
    return test::must(
        store::openStore(server_->address(), {.secret = secret_}, std::chrono::seconds(60)));
  }

 private:
  const std::string secret_;
  const std::string data_;
  std::unique_ptr<store::Server> server_;
};

}  // namespace

std::vector<StoreCandidate> storeCandidates() {
  return {
      {"memory", [] { return std::make_unique<InMemory>(); }},
      {"tcp", [] { return std::make_unique<Served>("tcp://127.0.0.1:0", "a secret"); }},
      {"unixSocket",
       [] {
         const std::string path =
             "unix://" + testing::TempDir() + "hmc_store_" + std::to_string(getpid()) + ".sock";
         return std::make_unique<Served>(path, "");
       }},
      {"withJournal",
       [] {
         const std::string folder =
             testing::TempDir() + "hmc_store_data_" + std::to_string(getpid());
         return std::make_unique<Served>("tcp://127.0.0.1:0", "", folder);
       }},
  };
}

}  // namespace hmc::contract
