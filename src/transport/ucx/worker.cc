#include "transport/ucx/worker.h"

#include "base/error.h"
#include "base/log.h"
#include "hmc/deadline.h"

namespace hmc::ucx {

namespace {

// How long a worker's last endpoints may take to go. UCX itself drops what is left then.
constexpr std::chrono::milliseconds kFarewell{100};

Status failed(const Api& api, const char* what, ucs_status_t status) {
  return error(Code::unsupported, "UCX {} cannot {}: {}", api.version, what, api.text(status));
}

void endpointFailed(void* owner, ucp_ep_h, ucs_status_t status) {
  static_cast<EndpointOwner*>(owner)->endpointFailed(status);
}

}  // namespace

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Api> api) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = api->ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return failed(*api, "read its settings", status);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  ucp_context_h handle = nullptr;
  status = api->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &handle);
  api->ucp_config_release(config);
  if (status != UCS_OK) return failed(*api, "start", status);
  std::unique_ptr<Context> context(new Context(std::move(api), handle));
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  status = context->api().ucp_context_query(handle, &attributes);
  if (status != UCS_OK) return failed(context->api(), "tell its kinds of memory", status);
  context->memoryTypes_ = attributes.memory_types;
  return context;
}

Result<std::unique_ptr<Worker>> Worker::create(Context& context) {
  const Api& api = context.api();
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h handle = nullptr;
  ucs_status_t status = api.ucp_worker_create(context.handle(), &params, &handle);
  if (status != UCS_OK) return failed(api, "make a worker", status);
  std::unique_ptr<Worker> worker(new Worker(context, handle));
  ucp_address_t* address = nullptr;
  size_t size = 0;
  status = api.ucp_worker_get_address(handle, &address, &size);
  if (status != UCS_OK) return failed(api, "tell a worker's address", status);
  worker->address_.assign(reinterpret_cast<const char*>(address), size);
  api.ucp_worker_release_address(handle, address);
  status = api.ucp_worker_get_efd(handle, &worker->fd_);
  if (status != UCS_OK) return failed(api, "make a worker that can be waited for", status);
  return worker;
}

Worker::~Worker() {
  const Deadline patience = kFarewell;
  while (closing_ > 0 && !patience.passed()) progress();
  api().ucp_worker_destroy(handle_);
}

Result<ucp_ep_h> Worker::connect(const std::string& address, EndpointOwner& owner) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &ucx::endpointFailed;
  params.err_handler.arg = &owner;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = api().ucp_ep_create(handle_, &params, &endpoint);
  if (status != UCS_OK) return failed(api(), "reach the peer", status);
  return endpoint;
}

void Worker::close(ucp_ep_h endpoint, uint32_t flags) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.cb.send = &Worker::closed;
  params.user_data = this;
  params.flags = flags;
  const ucs_status_ptr_t request = api().ucp_ep_close_nbx(endpoint, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++closing_;
  } else if (UCS_PTR_IS_ERR(request)) {
    logDebug("ucx: closing an endpoint: {}", api().text(UCS_PTR_STATUS(request)));
  }
}

void Worker::closed(void* request, ucs_status_t, void* worker) {
  auto* self = static_cast<Worker*>(worker);
  --self->closing_;
  self->api().ucp_request_free(request);
}

}  // namespace hmc::ucx
