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

Result<std::unique_ptr<Registration>> UcxRegistration::create(Context& context,
                                                              const Region& region, Access access) {
  if (region.ptr == nullptr || region.size == 0) {
    return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                 region.size, region.ptr);
  }
  const Api& api = context.api();
  const auto type = typeOf(region.device.kind);
  if (!type || !context.knows(*type)) {
    return error(Code::unsupported, "the UCX {} at {} does not reach {} memory", api.version,
                 api.path, deviceKindName(region.device.kind));
  }
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = region.ptr;
  params.length = region.size;
  params.prot =
      UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE | UCP_MEM_MAP_PROT_REMOTE_READ;
  if (access == Access::readWrite) params.prot |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
  params.memory_type = *type;
  ucp_mem_h handle = nullptr;
  const ucs_status_t status = api.ucp_mem_map(context.handle(), &params, &handle);
  if (status != UCS_OK) {
    return error(Code::failed, "UCX {} cannot register {} bytes at {}: {}", api.version,
                 region.size, region.ptr, api.text(status));
  }
  std::unique_ptr<UcxRegistration> made(new UcxRegistration(context, region, access, handle));
  HMC_TRY(made->makeKey());
  return std::unique_ptr<Registration>(std::move(made));
}

UcxRegistration::~UcxRegistration() {
  context_.api().ucp_mem_unmap(context_.handle(), handle_);
}

Status UcxRegistration::makeKey() {
  const Api& api = context_.api();
  void* bytes = nullptr;
  size_t size = 0;
  const ucs_status_t status = api.ucp_rkey_pack(context_.handle(), handle_, &bytes, &size);
  if (status != UCS_OK) {
    return error(Code::failed, "UCX {} cannot make a key of {} bytes at {}: {}", api.version,
                 region.size, region.ptr, api.text(status));
  }
  Key key{reinterpret_cast<uint64_t>(region.ptr), region.size, access,
          std::string(static_cast<const char*>(bytes), size)};
  api.ucp_rkey_buffer_release(bytes);
  key_ = key.encode();
  return Status();
}

}  // namespace hmc::ucx
