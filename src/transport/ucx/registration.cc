#include "transport/ucx/registration.h"

#include <optional>

#include "base/error.h"

namespace hmc::ucx {

namespace {

std::optional<ucs_memory_type_t> typeOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return UCS_MEMORY_TYPE_HOST;
    case DeviceKind::cuda:
      return UCS_MEMORY_TYPE_CUDA;
    case DeviceKind::hip:
      return UCS_MEMORY_TYPE_ROCM;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::unique_ptr<Registration>> UcxRegistration::create(Context& context, Areas& areas,
                                                              const Region& region, Access access) {
  if (region.ptr == nullptr || region.size == 0) {
    return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                 region.size, region.ptr);
  }
  std::unique_ptr<UcxRegistration> made(new UcxRegistration(context, areas, region, access));
  const auto type = typeOf(region.device.kind);
  Key key{made->area_, reinterpret_cast<uint64_t>(region.ptr), region.size, access, ""};
  if (type && context.knows(*type)) {
    HMC_TRY(made->map(*type));
    HMC_ASSIGN(key.remoteKey, made->pack());
  }
  made->key_ = key.encode();
  return std::unique_ptr<Registration>(std::move(made));
}

UcxRegistration::~UcxRegistration() {
  areas_.remove(area_);
  if (handle_) context_.api().ucp_mem_unmap(context_.handle(), handle_);
}

Status UcxRegistration::map(ucs_memory_type_t type) {
  const Api& api = context_.api();
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = region.ptr;
  params.length = region.size;
  params.prot =
      UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE | UCP_MEM_MAP_PROT_REMOTE_READ;
  if (access == Access::readWrite) params.prot |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
  params.memory_type = type;
  const ucs_status_t status = api.ucp_mem_map(context_.handle(), &params, &handle_);
  if (status == UCS_OK) return Status();
  return error(Code::failed, "UCX {} cannot register {} bytes at {}: {}", api.version, region.size,
               region.ptr, api.text(status));
}

Result<std::string> UcxRegistration::pack() const {
  const Api& api = context_.api();
  void* bytes = nullptr;
  size_t size = 0;
  const ucs_status_t status = api.ucp_rkey_pack(context_.handle(), handle_, &bytes, &size);
  if (status != UCS_OK) {
    return error(Code::failed, "UCX {} cannot make a key of {} bytes at {}: {}", api.version,
                 region.size, region.ptr, api.text(status));
  }
  std::string key(static_cast<const char*>(bytes), size);
  api.ucp_rkey_buffer_release(bytes);
  return key;
}

}  // namespace hmc::ucx
