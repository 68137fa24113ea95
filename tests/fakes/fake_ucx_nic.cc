// The real libucp and a NIC: every endpoint has a lane of hardware, whose put, get and flush are
// copies. Messages and connections are the real library's, over tcp. So the transport's hardware
// path is tested where there is no RDMA device. HMC_FAKE_NIC_NS is the time that a flush takes, so
// that `hmc bench` shows what the transport adds to one.
//
// Within the process it knows which memory was unregistered, but not which worker was destroyed. Of
// another process it reaches, as root, memory that is shared, and never stops doing so.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using Clock = std::chrono::steady_clock;

template <class Function>
Function find(const char* name) {
  static void* const library = dlopen(HMC_REAL_LIBUCP, RTLD_NOW | RTLD_LOCAL);
  void* const found = library ? dlsym(library, name) : nullptr;
  if (!found) std::abort();
  return reinterpret_cast<Function>(found);
}

// The real function of that name.
#define REAL(name)                                               \
  ([]() -> decltype(&::name) {                                   \
    static const auto function = find<decltype(&::name)>(#name); \
    return function;                                             \
  }())

// Memory that peers may reach.
struct Opened {
  char* begin;
  size_t size;  // 0 once it is unregistered
};

struct Key {
  pid_t process;
  Opened* opened;
  Opened then;  // what it was when the key was made
};

// Memory as an endpoint reaches it: of this process, or mapped from another.
struct Reached {
  const Opened* opened;
  const char* there;  // where it begins in its process
  char* here;
};

// A request of UCX's.
struct Asked {
  bool used = false;
  ucp_worker_h worker = nullptr;
  ucp_ep_h endpoint = nullptr;
  ucp_send_nbx_callback_t callback = nullptr;
  void* argument = nullptr;
  Clock::time_point due;
  ucs_status_t status = UCS_INPROGRESS;
};

struct Endpoint {
  ucp_worker_h worker;
  ucp_err_handler_t handler;
  bool broken = false, reported = false;
};

struct Nic {
  std::mutex moving;  // while bytes move; what is unregistered is not reached once that returns
  std::mutex mutex;   // guards what follows
  std::array<Asked, 8192> asked;
  std::vector<Asked*> free;
  std::deque<Asked*> pending;
  std::map<ucp_ep_h, Endpoint> endpoints;
  std::vector<std::unique_ptr<Opened>> opened;
  std::chrono::nanoseconds delay{0};
  std::atomic<unsigned> looks{0};
  std::atomic<uint64_t> moves{0};

  Nic() {
    for (Asked& one : asked) free.push_back(&one);
    if (const char* ns = std::getenv("HMC_FAKE_NIC_NS")) delay = decltype(delay)(std::atoll(ns));
  }
  bool has(const void* request) const {
    return request >= asked.data() && request < asked.data() + asked.size();
  }
  // With the mutex held.
  ucs_status_ptr_t ask(ucp_ep_h endpoint, const ucp_request_param_t* param) {
    if (free.empty()) return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    Asked* const one = free.back();
    free.pop_back();
    *one = Asked{true,    endpoints.at(endpoint).worker, endpoint, nullptr,
                 nullptr, Clock::now() + delay};
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) one->callback = param->cb.send;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) one->argument = param->user_data;
    pending.push_back(one);
    return one;
  }
};

Nic& nic() {
  static auto* one = new Nic;
  return *one;
}

// Not under the mutex: the callback may post more.
void tell(Asked* one, ucs_status_t status) {
  if (one->callback) return one->callback(one, status, one->argument);
  std::lock_guard lock(nic().mutex);
  one->status = status;
}

// Ends what is pending and `over`, which answers the status, or that it is in progress.
template <class Over>
unsigned end(const Over& over) {
  std::vector<std::pair<Asked*, ucs_status_t>> ended;
  {
    std::lock_guard lock(nic().mutex);
    std::erase_if(nic().pending, [&](Asked* one) {
      const ucs_status_t status = over(*one);
      if (status != UCS_INPROGRESS) ended.emplace_back(one, status);
      return status != UCS_INPROGRESS;
    });
  }
  for (const auto& [one, status] : ended) tell(one, status);
  return static_cast<unsigned>(ended.size());
}

bool busy(ucp_worker_h worker) {
  std::lock_guard lock(nic().mutex);
  return std::any_of(nic().pending.begin(), nic().pending.end(),
                     [&](const Asked* one) { return one->worker == worker; });
}

// Calls the handler of an endpoint of `worker` that is broken, if there is one.
void reportBroken(ucp_worker_h worker) {
  ucp_ep_h which = nullptr;
  ucp_err_handler_t handler{};
  {
    std::lock_guard lock(nic().mutex);
    for (auto& [endpoint, state] : nic().endpoints) {
      if (state.worker != worker || !state.broken || state.reported) continue;
      state.reported = true;
      which = endpoint;
      handler = state.handler;
    }
  }
  if (which && handler.cb) handler.cb(handler.arg, which, UCS_ERR_CONNECTION_RESET);
}

// A mapping of what lies at `there` in another process; null if it is not shared memory.
char* mapFrom(pid_t process, uintptr_t there) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream lines(folder + "/maps");
  for (std::string line; std::getline(lines, line);) {
    uintptr_t begin = 0, end = 0;
    char access[5] = {};
    off_t offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx", &begin, &end, access, &offset) != 4) continue;
    if (there < begin || there >= end) continue;
    if (access[3] != 's') return nullptr;
    const std::string file = folder + "/map_files/" + line.substr(0, line.find(' '));
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    void* mapped = mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    close(fd);
    return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped) + (there - begin);
  }
  return nullptr;
}

// What the NIC at the other end would say to it; null: no.
char* allowed(const Reached& reached, uint64_t address, size_t size) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(reached.there);
  const size_t most = reached.opened->size;
  return offset <= most && size <= most - offset ? reached.here + offset : nullptr;
}

// In packets, as a NIC does.
void move(void* to, const void* from, size_t size) {
  constexpr size_t kPacket = 4096;
  for (size_t done = 0; done < size; done += kPacket) {
    std::memcpy(static_cast<char*>(to) + done, static_cast<const char*>(from) + done,
                std::min(kPacket, size - done));
  }
}

constexpr unsigned kLooksPerLookAtTcp = 64;
// Smaller puts are done at once, as in UCX; the flush tells whether they failed.
constexpr size_t kInline = 2048;

ucs_status_ptr_t moveOver(bool put, ucp_ep_h endpoint, void* here, size_t size, uint64_t there,
                          ucp_rkey_h rkey, const ucp_request_param_t* param) {
  char* peers = nullptr;
  {
    std::lock_guard lock(nic().moving);
    peers = allowed(*reinterpret_cast<const Reached*>(rkey), there, size);
    if (peers) put ? move(peers, here, size) : move(here, peers, size);
  }
  if (peers) ++nic().moves;
  std::lock_guard lock(nic().mutex);
  if (!peers) nic().endpoints.at(endpoint).broken = true;
  return put && size <= kInline ? nullptr : nic().ask(endpoint, param);
}

}  // namespace

FAKE ucs_status_ptr_t ucp_put_nbx(ucp_ep_h endpoint, const void* here, size_t size, uint64_t there,
                                  ucp_rkey_h key, const ucp_request_param_t* param) {
  return moveOver(true, endpoint, const_cast<void*>(here), size, there, key, param);
}

FAKE ucs_status_ptr_t ucp_get_nbx(ucp_ep_h endpoint, void* here, size_t size, uint64_t there,
                                  ucp_rkey_h key, const ucp_request_param_t* param) {
  return moveOver(false, endpoint, here, size, there, key, param);
}

FAKE ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* param) {
  std::lock_guard lock(nic().mutex);
  return nic().ask(endpoint, param);
}

FAKE unsigned ucp_worker_progress(ucp_worker_h worker) {
  const auto now = Clock::now();
  const unsigned ended = end([&](const Asked& one) {
    if (one.worker != worker || one.due > now) return UCS_INPROGRESS;
    return nic().endpoints.at(one.endpoint).broken ? UCS_ERR_CONNECTION_RESET : UCS_OK;
  });
  // A look at tcp takes as long as ten at a NIC.
  const bool busyNic = ended > 0 || busy(worker);
  if (busyNic && ++nic().looks % kLooksPerLookAtTcp != 0) return ended;
  reportBroken(worker);
  return REAL(ucp_worker_progress)(worker) + ended;
}

FAKE ucs_status_t ucp_worker_arm(ucp_worker_h worker) {
  return busy(worker) ? UCS_ERR_BUSY : REAL(ucp_worker_arm)(worker);
}

FAKE void ucp_worker_destroy(ucp_worker_h worker) {
  REAL(ucp_worker_destroy)(worker);
  std::lock_guard lock(nic().mutex);
  std::erase_if(nic().endpoints, [&](const auto& one) { return one.second.worker == worker; });
}

FAKE ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                ucp_ep_h* made) {
  const ucs_status_t status = REAL(ucp_ep_create)(worker, params, made);
  if (status != UCS_OK) return status;
  Endpoint endpoint{worker, {}};
  if (params->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) endpoint.handler = params->err_handler;
  std::lock_guard lock(nic().mutex);
  nic().endpoints[*made] = endpoint;
  return status;
}

FAKE ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h endpoint, const ucp_request_param_t* param) {
  end([&](const Asked& one) {
    return one.endpoint == endpoint ? UCS_ERR_CANCELED : UCS_INPROGRESS;
  });
  return REAL(ucp_ep_close_nbx)(endpoint, param);
}

FAKE void ucp_request_free(void* request) {
  if (!nic().has(request)) return REAL(ucp_request_free)(request);
  std::lock_guard lock(nic().mutex);
  nic().free.push_back(static_cast<Asked*>(request));
  if (!std::exchange(nic().free.back()->used, false)) std::abort();  // freed twice
}

FAKE ucs_status_t ucp_request_check_status(void* request) {
  if (!nic().has(request)) return REAL(ucp_request_check_status)(request);
  std::lock_guard lock(nic().mutex);
  return static_cast<Asked*>(request)->status;
}

FAKE ucs_status_t ucp_mem_map(ucp_context_h, const ucp_mem_map_params_t* params, ucp_mem_h* made) {
  std::lock_guard lock(nic().mutex);
  auto& opened = nic().opened;
  opened.push_back(
      std::make_unique<Opened>(Opened{static_cast<char*>(params->address), params->length}));
  *made = reinterpret_cast<ucp_mem_h>(opened.back().get());
  return UCS_OK;
}

FAKE ucs_status_t ucp_mem_unmap(ucp_context_h, ucp_mem_h memory) {
  std::lock_guard lock(nic().moving);
  reinterpret_cast<Opened*>(memory)->size = 0;
  return UCS_OK;
}

FAKE ucs_status_t ucp_rkey_pack(ucp_context_h, ucp_mem_h memory, void** bytes, size_t* size) {
  auto* const opened = reinterpret_cast<Opened*>(memory);
  *bytes = new Key{getpid(), opened, *opened};
  *size = sizeof(Key);
  return UCS_OK;
}

FAKE void ucp_rkey_buffer_release(void* bytes) {
  delete static_cast<Key*>(bytes);
}

FAKE ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h, const void* bytes, ucp_rkey_h* made) {
  Key key;
  std::memcpy(&key, bytes, sizeof(key));
  Reached reached{key.opened, key.then.begin, key.then.begin};
  if (key.process != getpid()) {
    reached.here = mapFrom(key.process, reinterpret_cast<uintptr_t>(key.then.begin));
    if (!reached.here) {
      std::fprintf(stderr, "fake NIC: memory of process %d is not shared, or we are not root\n",
                   key.process);
      return UCS_ERR_UNREACHABLE;
    }
    std::lock_guard lock(nic().mutex);
    nic().opened.push_back(std::make_unique<Opened>(key.then));
    reached.opened = nic().opened.back().get();
  }
  *made = reinterpret_cast<ucp_rkey_h>(new Reached(reached));
  return UCS_OK;
}

FAKE void ucp_rkey_destroy(ucp_rkey_h key) {
  delete reinterpret_cast<Reached*>(key);
}

// Answers the one lane, as UCX does after 1.13, in a field that follows those of 1.13.
FAKE ucs_status_t ucp_ep_query(ucp_ep_h, ucp_ep_attr_t* attributes) {
  const char** lane = *reinterpret_cast<const char***>(&attributes->remote_sockaddr + 1);
  lane[0] = "rc_fake";
  lane[1] = "nic0:1";
  return UCS_OK;
}

FAKE void ucp_context_print_info(const ucp_context_h, FILE* stream) {
  std::fputs("#  resource 1  :  md 1  dev 1  flags -- rc_fake/nic0:1\n", stream);
}

// For tests: how many puts and gets it has done.
FAKE uint64_t fakeNicMoves() {
  return nic().moves;
}

// All else is the real library's.
#define HMC_FORWARD(type, name, parameters, values) \
  FAKE type name parameters {                       \
    return REAL(name) values;                       \
  }
HMC_FORWARD(void, ucp_get_version, (unsigned* a, unsigned* b, unsigned* c), (a, b, c))
HMC_FORWARD(const char*, ucp_get_version_string, (), ())
HMC_FORWARD(const char*, ucs_status_string, (ucs_status_t status), (status))
HMC_FORWARD(ucs_status_t, ucp_config_read, (const char* a, const char* b, ucp_config_t** c),
            (a, b, c))
HMC_FORWARD(ucs_status_t, ucp_config_modify, (ucp_config_t * a, const char* b, const char* c),
            (a, b, c))
HMC_FORWARD(void, ucp_ep_print_info, (ucp_ep_h a, FILE* b), (a, b))
HMC_FORWARD(void, ucp_config_release, (ucp_config_t * config), (config))
HMC_FORWARD(ucs_status_t, ucp_init_version,
            (unsigned a, unsigned b, const ucp_params_t* c, const ucp_config_t* d,
             ucp_context_h* e),
            (a, b, c, d, e))
HMC_FORWARD(void, ucp_cleanup, (ucp_context_h context), (context))
HMC_FORWARD(ucs_status_t, ucp_dt_create_generic,
            (const ucp_generic_dt_ops_t* a, void* b, ucp_datatype_t* c), (a, b, c))
HMC_FORWARD(void, ucp_dt_destroy, (ucp_datatype_t type), (type))
HMC_FORWARD(ucs_status_t, ucp_worker_create,
            (ucp_context_h a, const ucp_worker_params_t* b, ucp_worker_h* c), (a, b, c))
HMC_FORWARD(ucs_status_t, ucp_worker_query, (ucp_worker_h a, ucp_worker_attr_t* b), (a, b))
HMC_FORWARD(ucs_status_t, ucp_worker_get_address, (ucp_worker_h a, ucp_address_t** b, size_t* c),
            (a, b, c))
HMC_FORWARD(void, ucp_worker_release_address, (ucp_worker_h a, ucp_address_t* b), (a, b))
HMC_FORWARD(ucs_status_t, ucp_worker_get_efd, (ucp_worker_h a, int* b), (a, b))
HMC_FORWARD(ucs_status_t, ucp_worker_set_am_recv_handler,
            (ucp_worker_h a, const ucp_am_handler_param_t* b), (a, b))
// Of a header that distributions leave out.
FAKE void pushLogHandler(void* handler) __asm__("ucs_log_push_handler");
FAKE void pushLogHandler(void* handler) {
  find<void (*)(void*)>("ucs_log_push_handler")(handler);
}
HMC_FORWARD(ucs_status_ptr_t, ucp_am_send_nbx,
            (ucp_ep_h a, unsigned b, const void* c, size_t d, const void* e, size_t f,
             const ucp_request_param_t* g),
            (a, b, c, d, e, f, g))
