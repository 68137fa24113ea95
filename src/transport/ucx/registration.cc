#include "transport/ucx/registration.h"

#include "base/error.h"

namespace hmc::ucx {

namespace {

// UCX 1.13 lets hardware write to whatever it registers, so messages serve read-only memory: they
// are checked.
bool isForHardware(const Context& context, Access access) {
  return access == Access::readWrite && context.hasHardware();
}

}  // namespace

Result<std::unique_ptr<Registration>> UcxRegistration::create(Context& context, Exports& exports,
                                                              const Region& region, Access access) {
  if (region.ptr == nullptr || region.size == 0) {
    return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                 region.size, region.ptr);
  }
  std::unique_ptr<UcxRegistration> made(new UcxRegistration(context, exports, region, access));
  Key key{made->id_, reinterpret_cast<uint64_t>(region.ptr), region.size, access, "", ""};
  if (isForHardware(context, access)) {
    auto packed = made->openToHardware();
    (packed.ok() ? key.hardware : key.hindrance) =
        packed.ok() ? *std::move(packed) : packed.status().message();
  }
  made->key_ = key.encode();
  return std::unique_ptr<Registration>(std::move(made));
}

UcxRegistration::~UcxRegistration() {
  exports_.remove(id_);
  if (handle_) context_.api().ucp_mem_unmap(context_.handle(), handle_);
}

// Answers UCX's key.
Result<std::string> UcxRegistration::openToHardware() {
  const Api& api = context_.api();
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = region.ptr;
  params.length = region.size;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  ucs_status_t status = api.ucp_mem_map(context_.handle(), &params, &handle_);
  if (status != UCS_OK) {
    handle_ = nullptr;
    return error(Code::failed,
                 "the peer's UCX {} cannot register {} bytes with its RDMA device: {}; raise the "
                 "peer's limit of locked memory (ulimit -l)",
                 api.version, region.size, api.text(status));
  }
  void* bytes = nullptr;
  size_t size = 0;
  status = api.ucp_rkey_pack(context_.handle(), handle_, &bytes, &size);
  if (status != UCS_OK) {
    return error(Code::failed, "the peer's UCX {} has no key for {} bytes: {}", api.version,
                 region.size, api.text(status));
  }
  std::string key(static_cast<const char*>(bytes), size);
  api.ucp_rkey_buffer_release(bytes);
  return key;
}

}  // namespace hmc::ucx
