#include <smem.h>
#include <smem_shm.h>

#include <vector>

#include "caller.h"
#include "process.h"

namespace hmc::test {

namespace {

// The least that these functions take.
constexpr uint32_t kSeconds = 1;
constexpr uint32_t kRanks = 2;
constexpr uint64_t kSize = uint64_t{2} << 20;
constexpr uint32_t kBytes = 1000;

Status statusOf(int32_t code) {
  if (code == SMEM_OK) return Status();
  return Status(Code::failed, smem_get_last_err_msg());
}

// An object of both ranks, which is made anew after something failed.
class Shared {
 public:
  Shared(uint32_t id, uint32_t rank) : id_(id), rank_(rank) {}

  template <class Function>
  Status run(Function function) {
    if (!handle_) {
      void* address = nullptr;
      handle_ = smem_shm_create(id_, kRanks, rank_, kSize, SMEMS_DATA_OP_MTE, 0, &address);
      if (!handle_) return statusOf(SMEM_ERROR);
    }
    const Status outcome = statusOf(function(handle_));
    failed_ = !outcome.ok();
    return outcome;
  }
  void tidyUp() {
    if (failed_) destroy();
  }
  void destroy() {
    if (handle_) (void)smem_shm_destroy(handle_, 0);
    handle_ = nullptr;
    failed_ = false;
  }

 private:
  const uint32_t id_, rank_;
  smem_shm_t handle_ = nullptr;
  bool failed_ = false;
};

// MemFabric's functions. The first one's process has the store.
class MemFabricCaller : public Caller {
 public:
  explicit MemFabricCaller(const Circumstances& circumstances)
      : lease_(circumstances.lease),
        rank_(circumstances.first ? 0 : 1),
        store_("tcp://" + circumstances.host + ":" + std::to_string(freePort())) {
    const Status begun = statusOf(smem_init(0));
    if (!begun.ok() || (rank_ == 0 && !enter(store_).ok()))
      throw std::runtime_error(smem_get_last_err_msg());
  }
  ~MemFabricCaller() override {
    for (Shared* object : {&barrier_, &allgather_, &create_}) object->destroy();
    smem_shm_uninit(0);
    smem_uninit();
  }

  std::string introduction() const override { return store_; }
  Status meet(const std::string& introduction) override {
    return rank_ == 0 ? Status() : enter(introduction);
  }
  std::vector<Call> calls() override;
  // Three objects, which leave within their lease of the store's timeout.
  std::chrono::milliseconds ends() const override {
    return 3 * (5 * lease_ + std::chrono::seconds(kSeconds));
  }

 private:
  Status enter(const std::string& store) const {
    smem_shm_config_t config;
    smem_shm_config_init(&config);
    config.shmInitTimeout = config.shmCreateTimeout = config.controlOperationTimeout = kSeconds;
    return statusOf(smem_shm_init(store.c_str(), kRanks, rank_, 0, &config));
  }

  const std::chrono::milliseconds lease_;
  const uint32_t rank_;
  const std::string store_;
  Shared barrier_{1, rank_}, allgather_{2, rank_}, create_{3, rank_};
};

std::vector<Call> MemFabricCaller::calls() {
  using T = Timeout;
  // Each makes its object first. They take whole seconds instead of the test's timeout.
  constexpr std::chrono::milliseconds kBoth{2000 * kSeconds};
  return {
      {"shmBarrier", [this](T) { return barrier_.run(smem_shm_control_barrier); }, kBoth, true,
       [this] { barrier_.tidyUp(); }},
      {"shmAllgather",
       [this](T) {
         return allgather_.run([](smem_shm_t handle) {
           const std::vector<char> sent(kBytes);
           std::vector<char> received(kRanks * kBytes);
           return smem_shm_control_allgather(handle, sent.data(), kBytes, received.data(),
                                             kRanks * kBytes);
         });
       },
       kBoth, true, [this] { allgather_.tidyUp(); }},
      {"shmCreate", [this](T) { return create_.run([](smem_shm_t) { return int32_t{SMEM_OK}; }); },
       kBoth, true, [this] { create_.destroy(); }},
  };
}

}  // namespace

std::unique_ptr<Caller> makeMemFabricCaller(const Circumstances& circumstances) {
  return std::make_unique<MemFabricCaller>(circumstances);
}

}  // namespace hmc::test
