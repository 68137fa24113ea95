#include "bench/bare_ucp.h"

#include <dlfcn.h>
#include <poll.h>
#include <ucp/api/ucp.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include <fmt/core.h>

#include "hmc/deadline.h"
#include "try.h"

namespace hmc::bench {

namespace {

constexpr std::chrono::seconds kUcxTimeout{60};
constexpr std::chrono::microseconds kSpin{50};
constexpr int kSleepMs = 50;
constexpr int kPollsPerCheck = 1 << 20;

// clang-format off
#define BARE_UCP_FUNCTIONS(X) \
  X(ucp_config_read) X(ucp_config_modify) X(ucp_config_release) \
  X(ucp_init_version) X(ucp_cleanup) X(ucp_worker_create) \
  X(ucp_worker_destroy) X(ucp_worker_get_address) X(ucp_worker_release_address) \
  X(ucp_worker_get_efd) X(ucp_worker_arm) X(ucp_worker_progress) \
  X(ucp_ep_create) X(ucp_ep_flush_nbx) X(ucp_ep_close_nbx) \
  X(ucp_ep_rkey_unpack) X(ucp_rkey_destroy) X(ucp_mem_map) \
  X(ucp_mem_unmap) X(ucp_rkey_pack) X(ucp_rkey_buffer_release) \
  X(ucp_put_nbx) X(ucp_request_check_status) X(ucp_request_free) \
  X(ucs_status_string)
// clang-format on

struct UcpApi {
#define BARE_UCP_POINTER(name) decltype(&::name) name = nullptr;
  BARE_UCP_FUNCTIONS(BARE_UCP_POINTER)
#undef BARE_UCP_POINTER
};

// Never unloaded: UCX starts threads.
Result<UcpApi> loadApi() {
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return Status(Code::unsupported, "the ucx transport has not loaded UCX");
  UcpApi api;
#define BARE_UCP_FIND(name)                                              \
  api.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (!api.name) return Status(Code::unsupported, "libucp has no function " #name);
  BARE_UCP_FUNCTIONS(BARE_UCP_FIND)
#undef BARE_UCP_FIND
  return api;
}

// A context with one worker, with the settings of the ucx transport.
class UcpWorker {
 public:
  explicit UcpWorker(const UcpApi& functions) : api(functions) {}
  ~UcpWorker() {
    if (worker) api.ucp_worker_destroy(worker);
    if (context) api.ucp_cleanup(context);
  }
  Status open() {
    ucp_config_t* config = nullptr;
    TOOL_TRY(check("read its settings", api.ucp_config_read(nullptr, nullptr, &config)));
    if (!std::getenv("UCX_TLS")) api.ucp_config_modify(config, "TLS", "^sm");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    const ucs_status_t status =
        api.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
    api.ucp_config_release(config);
    TOOL_TRY(check("start", status));
    ucp_worker_params_t single{};
    return check("make a worker", api.ucp_worker_create(context, &single, &worker));
  }
  Status check(const char* what, ucs_status_t status) const {
    if (status == UCS_OK) return Status();
    return Status(Code::failed,
                  fmt::format("UCX cannot {}: {}", what, api.ucs_status_string(status)));
  }

  const UcpApi api;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
};

std::string hexOf(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  return text;
}

std::string bytesOf(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class UcpTarget final : public BareUcpTarget {
 public:
  explicit UcpTarget(const UcpApi& api) : worker_(api) {}
  ~UcpTarget() override {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
    if (memory_) worker_.api.ucp_mem_unmap(worker_.context, memory_);
  }
  std::string address() const override { return address_; }

  Status open(void* memory, size_t bytes) {
    TOOL_TRY(worker_.open());
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = bytes;
    TOOL_TRY(worker_.check("register memory",
                           worker_.api.ucp_mem_map(worker_.context, &params, &memory_)));
    void* key = nullptr;
    size_t keySize = 0;
    TOOL_TRY(worker_.check("make a key",
                           worker_.api.ucp_rkey_pack(worker_.context, memory_, &key, &keySize)));
    ucp_address_t* address = nullptr;
    size_t size = 0;
    TOOL_TRY(worker_.check("tell an address",
                           worker_.api.ucp_worker_get_address(worker_.worker, &address, &size)));
    TOOL_TRY(worker_.check("wait", worker_.api.ucp_worker_get_efd(worker_.worker, &fd_)));
    address_ = fmt::format("{}:{}:{}", hexOf(address, size), hexOf(key, keySize),
                           reinterpret_cast<uintptr_t>(memory));
    worker_.api.ucp_worker_release_address(worker_.worker, address);
    worker_.api.ucp_rkey_buffer_release(key);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    return Status();
  }

 private:
  void serve(const std::stop_token& stop) {
    Deadline spin = kSpin;
    while (!stop.stop_requested()) {
      if (worker_.api.ucp_worker_progress(worker_.worker) != 0) {
        spin = kSpin;
      } else if (spin.passed() && worker_.api.ucp_worker_arm(worker_.worker) == UCS_OK) {
        pollfd waiting{fd_, POLLIN, 0};
        poll(&waiting, 1, kSleepMs);
        spin = kSpin;
      }
    }
  }

  UcpWorker worker_;
  ucp_mem_h memory_ = nullptr;
  int fd_ = -1;
  std::string address_;
  std::jthread thread_;
};

class UcpOrigin final : public BareUcp {
 public:
  UcpOrigin(const UcpApi& api, const void* memory) : worker_(api), memory_(memory) {}
  ~UcpOrigin() override {
    if (key_) worker_.api.ucp_rkey_destroy(key_);
    ucp_request_param_t gently{};
    if (endpoint_) (void)await(worker_.api.ucp_ep_close_nbx(endpoint_, &gently));
  }

  Status open(const std::string& address) {
    std::istringstream parts(address);
    std::string worker;
    std::string key;
    std::getline(parts, worker, ':');
    std::getline(parts, key, ':');
    parts >> there_;
    TOOL_TRY(worker_.open());
    const std::string bytes = bytesOf(worker);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(bytes.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    TOOL_TRY(
        worker_.check("connect", worker_.api.ucp_ep_create(worker_.worker, &params, &endpoint_)));
    return worker_.check("use a key",
                         worker_.api.ucp_ep_rkey_unpack(endpoint_, bytesOf(key).data(), &key_));
  }

  Status put(size_t bytes) override {
    ucp_request_param_t plain;
    plain.op_attr_mask = 0;
    const ucs_status_ptr_t sending =
        worker_.api.ucp_put_nbx(endpoint_, memory_, bytes, there_, key_, &plain);
    const ucs_status_ptr_t flushing = worker_.api.ucp_ep_flush_nbx(endpoint_, &plain);
    TOOL_TRY(await(flushing));
    return await(sending);
  }

 private:
  Status await(ucs_status_ptr_t request) {
    if (!request) return Status();
    if (UCS_PTR_IS_ERR(request)) return worker_.check("put", UCS_PTR_STATUS(request));
    ucs_status_t status = worker_.api.ucp_request_check_status(request);
    // No clock at every poll: others are measured against this.
    for (int polls = 1; status == UCS_INPROGRESS; ++polls) {
      worker_.api.ucp_worker_progress(worker_.worker);
      status = worker_.api.ucp_request_check_status(request);
      if (polls == kPollsPerCheck) deadline_ = Deadline(kUcxTimeout);
      if (polls % kPollsPerCheck == 0 && deadline_.passed())
        return Status(Code::deadlineExceeded, "UCX does not answer");
    }
    worker_.api.ucp_request_free(request);
    return worker_.check("put", status);
  }

  UcpWorker worker_;
  const void* const memory_;
  uint64_t there_ = 0;
  ucp_ep_h endpoint_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  Deadline deadline_ = Deadline::now();
};

}  // namespace

Result<std::unique_ptr<BareUcpTarget>> BareUcpTarget::start(void* memory, size_t bytes) {
  TOOL_ASSIGN(const UcpApi api, loadApi());
  auto target = std::make_unique<UcpTarget>(api);
  TOOL_TRY(target->open(memory, bytes));
  return std::unique_ptr<BareUcpTarget>(std::move(target));
}

Result<std::unique_ptr<BareUcp>> BareUcp::connect(const std::string& address, const void* memory) {
  TOOL_ASSIGN(const UcpApi api, loadApi());
  auto origin = std::make_unique<UcpOrigin>(api, memory);
  TOOL_TRY(origin->open(address));
  return std::unique_ptr<BareUcp>(std::move(origin));
}

}  // namespace hmc::bench
