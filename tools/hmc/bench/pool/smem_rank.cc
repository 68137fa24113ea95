#include "bench/pool/smem_rank.h"

#define SMEM_API_LEVEL 2
#include <dlfcn.h>
#include <smem.h>
#include <smem_shm.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "hmc/info.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr const char* kSmemLibrary = "libmf_smem.so";
constexpr uint64_t kSymmetricBytes = 2 << 20;  // the least there is: nobody uses it here

// row(function)
// clang-format off
#define HMC_BENCH_SMEM(row) \
  row(smem_init) \
  row(smem_uninit) \
  row(smem_get_last_err_msg) \
  row(smem_shm_config_init) \
  row(smem_shm_init) \
  row(smem_shm_create) \
  row(smem_shm_control_barrier) \
  row(smem_shm_control_allgather) \
  row(smem_shm_subgroup_barrier)
// clang-format on

struct SmemCalls {
#define HMC_ROW(name) decltype(&::name) name = nullptr;
  HMC_BENCH_SMEM(HMC_ROW)
#undef HMC_ROW
};

// Beside libhmc, or where the loader looks. In this order: a sanitizer's dlopen() does not look
// into the folders of this program's own libraries.
void* openSmem() {
  const auto beside = std::filesystem::path(buildReport().library).replace_filename(kSmemLibrary);
  void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? library : dlopen(kSmemLibrary, RTLD_NOW | RTLD_LOCAL);
}

Result<SmemCalls> loadSmem() {
  void* library = openSmem();
  if (library == nullptr) {
    return Status(Code::notFound,
                  fmt::format("{} could not be loaded: {}", kSmemLibrary, dlerror()));
  }
  SmemCalls calls;
#define HMC_ROW(name)                                                         \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name)); \
  if (calls.name == nullptr)                                                  \
    return Status(Code::unsupported, fmt::format("{} has no " #name "()", kSmemLibrary));
  HMC_BENCH_SMEM(HMC_ROW)
#undef HMC_ROW
  return calls;
}

class LoadedRank final : public SmemRank {
 public:
  LoadedRank(const SmemCalls& calls, uint32_t ranks, uint32_t rank)
      : calls_(calls),
        ranks_(ranks),
        rank_(rank),
        mine_(kShareBytes, static_cast<char>(rank + 1)),
        all_(size_t{kShareBytes} * ranks) {}
  ~LoadedRank() override { calls_.smem_uninit(); }

  Status start(const std::string& store) {
    smem_shm_config_t config;
    TOOL_TRY(check(calls_.smem_init(0), "smem_init"));
    TOOL_TRY(check(calls_.smem_shm_config_init(&config), "smem_shm_config_init"));
    config.startConfigStore = false;
    return check(calls_.smem_shm_init(store.c_str(), ranks_, rank_, 0, &config), "smem_shm_init");
  }
  Status meet() override {
    void* base = nullptr;
    object_ =
        calls_.smem_shm_create(0, ranks_, rank_, kSymmetricBytes, SMEMS_DATA_OP_MTE, 0, &base);
    return check(object_ == nullptr ? -1 : 0, "smem_shm_create");
  }

  Status give(Order order) override { return exchange(order).status(); }
  Result<Order> take() override { return exchange({}); }

  Status perform(Order order) override {
    std::fill(all_.begin(), all_.end(), 0);
    TOOL_TRY(check(calls_.smem_shm_control_barrier(object_), "barrier"));
    for (uint32_t i = 0; i < order.count; ++i) TOOL_TRY(performOnce(order.what));
    return order.what == What::allgather ? checkShares() : Status();
  }

 private:
  Status check(int32_t code, const char* what) const {
    if (code == 0) return Status();
    return Status(Code::failed, fmt::format("{} of rank {}: {} ({})", what, rank_,
                                            calls_.smem_get_last_err_msg(), code));
  }
  // The order of rank 0.
  Result<Order> exchange(Order mine) {
    std::vector<Order> orders(ranks_);
    const auto size = static_cast<uint32_t>(sizeof(Order));
    TOOL_TRY(check(
        calls_.smem_shm_control_allgather(object_, reinterpret_cast<const char*>(&mine), size,
                                          reinterpret_cast<char*>(orders.data()), size * ranks_),
        "allgather"));
    return orders.front();
  }
  Status performOnce(What what) {
    switch (what) {
      case What::barrier:
        return check(calls_.smem_shm_control_barrier(object_), "barrier");
      case What::barrierThroughStore:
        return check(calls_.smem_shm_subgroup_barrier(object_, "all", ranks_, rank_),
                     "barrier through the store");
      case What::allgather:
        return check(calls_.smem_shm_control_allgather(object_, mine_.data(), kShareBytes,
                                                       all_.data(), kShareBytes * ranks_),
                     "allgather");
      case What::end:
        break;
    }
    return Status();
  }
  Status checkShares() const {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i] == static_cast<char>(i / kShareBytes + 1)) continue;
      return Status(Code::failed, fmt::format("allgather: byte {} of {} is wrong", i, all_.size()));
    }
    return Status();
  }

  const SmemCalls calls_;
  const uint32_t ranks_;
  const uint32_t rank_;
  const std::vector<char> mine_;
  std::vector<char> all_;
  smem_shm_t object_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<SmemRank>> SmemRank::open(const std::string& store, uint32_t ranks,
                                                 uint32_t rank) {
  TOOL_ASSIGN(const SmemCalls calls, loadSmem());
  auto made = std::make_unique<LoadedRank>(calls, ranks, rank);
  TOOL_TRY(made->start(store));
  return std::unique_ptr<SmemRank>(std::move(made));
}

}  // namespace hmc::bench
