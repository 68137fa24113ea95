#include "transport/ucx/worker.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/wire.h"

namespace hmc::ucx {

namespace {

Status failed(const Api& api, const char* what, ucs_status_t status) {
  return error(Code::unsupported, "UCX {} cannot {}: {}", api.version, what, api.text(status));
}

// Smaller messages are copied anyway, and quicker.
constexpr size_t kAlwaysCopied = 1024;

const ucp_generic_dt_ops_t kCopied{
    .start_pack = [](void*, const void* buffer, size_t) { return const_cast<void*>(buffer); },
    .start_unpack = [](void*, void*, size_t) -> void* { return nullptr; },
    .packed_size = [](void* state) { return static_cast<const Bytes*>(state)->size; },
    .pack =
        [](void* state, size_t offset, void* to, size_t most) {
          const auto& bytes = *static_cast<const Bytes*>(state);
          const size_t size = std::min(most, bytes.size - offset);
          std::memcpy(to, bytes.data + offset, size);
          return size;
        },
    .unpack = [](void*, size_t, const void*, size_t) { return UCS_ERR_UNSUPPORTED; },
    .finish = [](void*) {},
};

// A message and its bytes, until UCX has sent them.
struct PostedMessage {
  const Api& api;
  char header[sizeof(Request)];
  std::unique_ptr<char[]> bytes;
  Bytes carried;
  static void onSent(void* request, ucs_status_t, void* message) {
    std::unique_ptr<PostedMessage> self(static_cast<PostedMessage*>(message));
    self->api.ucp_request_free(request);
  }
};

static_assert(kLargest <= size_t{316} << 10, "TCP_TX_SEG_SIZE has to have room for it");

// Versions that do not know a setting ignore it. 1.13 knows those of its transports by the name
// without the first part.
void set(const Api& api, ucp_config_t* config, const char* name, const char* value) {
  api.ucp_config_modify(config, name, value);
  for (const char* prefix : {"TCP_", "IB_"}) {
    const size_t length = std::strlen(prefix);
    if (std::strncmp(name, prefix, length) == 0) {
      api.ucp_config_modify(config, name + length, value);
    }
  }
}

bool isSet(const std::string& name) {
  return std::getenv(("UCX_" + name).c_str()) != nullptr;
}

// Our defaults, where the user has set nothing.
void setDefaults(const Api& api, ucp_config_t* config) {
  static constexpr const char* kSettings[][2] = {
      // Endpoints that notice their peer's death cannot use shared memory, and without it a worker
      // is made in a fraction of the time.
      {"TLS", "^sm"},
      // The largest message fits in one. With UCX's own 8 KiB most of the time goes into system
      // calls, and a message in several pieces costs another copy of every byte.
      {"TCP_TX_SEG_SIZE", "324k"},
      {"TCP_RX_SEG_SIZE", "324k"},
      // Otherwise a host that does not answer would block us for minutes, and 1.13 crashes where
      // tcp only brings up lanes of RDMA.
      {"TCP_CONN_NB", "y"},
  };
  for (const auto& [name, value] : kSettings) {
    if (!isSet(name)) set(api, config, name, value);
  }
}

// Peers must not reach memory that was unregistered, so the user cannot change this: no cache of
// registrations, neither UCX's nor that of its module for RDMA, and no key for all memory.
void disableRegistrationCache(const Api& api, ucp_config_t* config) {
  set(api, config, "RCACHE_ENABLE", "n");
  if (hasRdmaDevice()) set(api, config, "IB_REG_METHODS", "direct");
}

}  // namespace

Context::~Context() {
  if (abandoned_) return;
  if (copied_) api_->ucp_dt_destroy(copied_);
  api_->ucp_cleanup(handle_);
}

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Api> api, Purpose purpose) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = api->ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed(*api, "read its settings", status);
  setDefaults(*api, config);
  if (purpose == Purpose::serve) disableRegistrationCache(*api, config);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  ucp_context_h handle = nullptr;
  status = api->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &handle);
  api->ucp_config_release(config);
  if (status != UCS_OK) return failed(*api, "start", status);
  std::unique_ptr<Context> context(new Context(std::move(api), handle));
  context->hasHardware_ = ucx::hasHardware(context->api(), handle);
  context->wholeOverTcp_ = !isSet("TCP_TX_SEG_SIZE") && !isSet("TCP_RX_SEG_SIZE");
  status = context->api().ucp_dt_create_generic(&kCopied, nullptr, &context->copied_);
  if (status != UCS_OK) return failed(context->api(), "make a datatype", status);
  return context;
}

Worker::~Worker() {
  if (handle_) api().ucp_worker_destroy(handle_);
}

Status Worker::open(unsigned number, ucp_am_recv_callback_t callback, void* argument) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = api().ucp_worker_create(context_.handle(), &params, &handle_);
  if (status != UCS_OK) return failed(api(), "make a worker", status);
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
  status = api().ucp_worker_query(handle_, &attributes);
  if (status != UCS_OK) return failed(api(), "give a worker's address", status);
  address_.assign(reinterpret_cast<const char*>(attributes.address), attributes.address_length);
  api().ucp_worker_release_address(handle_, attributes.address);
  status = api().ucp_worker_get_efd(handle_, &fd_);
  if (status != UCS_OK) return failed(api(), "make a worker with a descriptor", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = number;
  handler.cb = callback;
  handler.arg = argument;
  status = api().ucp_worker_set_am_recv_handler(handle_, &handler);
  return status == UCS_OK ? Status() : failed(api(), "receive messages", status);
}

ucs_status_ptr_t Worker::send(ucp_ep_h endpoint, unsigned number, const void* header,
                              size_t headerSize, const Bytes& bytes,
                              ucp_send_nbx_callback_t callback, void* argument) const {
  ucp_request_param_t params;
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.cb.send = callback;
  params.user_data = argument;
  params.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
  if (bytes.inPlace || bytes.size <= kAlwaysCopied) {
    return api().ucp_am_send_nbx(endpoint, number, header, headerSize, bytes.data, bytes.size,
                                 &params);
  }
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  params.datatype = context_.copied();
  return api().ucp_am_send_nbx(endpoint, number, header, headerSize, &bytes, 1, &params);
}

ucs_status_t Worker::post(ucp_ep_h endpoint, unsigned number, std::string_view header,
                          std::unique_ptr<char[]> bytes, size_t size) const {
  auto message = std::make_unique<PostedMessage>(PostedMessage{api(), {}, std::move(bytes), {}});
  message->carried = {message->bytes.get(), size};
  header.copy(message->header, sizeof(message->header));
  const ucs_status_ptr_t request = send(endpoint, number, message->header, header.size(),
                                        message->carried, &PostedMessage::onSent, message.get());
  if (UCS_PTR_IS_PTR(request)) (void)message.release();
  return UCS_PTR_STATUS(request);
}

Result<ucp_ep_h> Worker::connect(const std::string& address, EndpointOwner& owner) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = [](void* failed, ucp_ep_h, ucs_status_t why) {
    static_cast<EndpointOwner*>(failed)->endpointFailed(why);
  };
  params.err_handler.arg = &owner;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = api().ucp_ep_create(handle_, &params, &endpoint);
  if (status != UCS_OK) return failed(api(), "reach the peer", status);
  return endpoint;
}

void Worker::abandon() {
  handle_ = nullptr;
  context_.abandon();
}

void Worker::drop(ucp_ep_h endpoint) {
  if (!handle_) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = api().ucp_ep_close_nbx(endpoint, &params);
  if (UCS_PTR_IS_PTR(request)) api().ucp_request_free(request);
}

void Draining::add(std::unique_ptr<Worker> worker, Deadline deadline) {
  std::lock_guard lock(mutex_);
  all_.push_back({std::move(worker), deadline});
}

Draining::~Draining() {
  for (Entry& one : all_) one.worker->abandon();
}

bool Draining::step() {
  std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const Entry& one) {
    one.worker->progress();
    if (one.worker->settled()) return true;
    if (one.deadline.passed()) one.worker->abandon();
    return one.deadline.passed();
  });
  return !all_.empty();
}

}  // namespace hmc::ucx
