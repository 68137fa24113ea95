#include "transport/verbs/nic.h"

#include <fcntl.h>

#include <algorithm>

#include "base/error.h"

namespace hmc::verbs {

Result<std::unique_ptr<Nic>> Nic::open(std::shared_ptr<const Library> library, const Port& port) {
  DeviceList devices = listDevices(*library);
  for (ibv_device** device = devices.get(); device && *device; ++device) {
    if (port.device != library->ibv_get_device_name(*device)) continue;
    HMC_ASSIGN(auto context, openDevice(*library, *device));
    std::unique_ptr<Nic> nic(new Nic(std::move(library), port));
    HMC_TRY(nic->prepare(std::move(context)));
    return nic;
  }
  return error(Code::unsupported, "RDMA device {} is gone", port.device);
}

Status Nic::prepare(Handle<ibv_context> context) {
  context_ = std::move(context);
  if (int failed = library_->ibv_query_device(context_.get(), &limits_); failed != 0) {
    return errnoStatus(fmt::format("querying RDMA device {}", port_.device), failed);
  }
  pd_ = {library_->ibv_alloc_pd(context_.get()), library_->ibv_dealloc_pd};
  if (!pd_) return errnoStatus(fmt::format("allocating a protection domain of {}", port_.device));
  scratchKey_ = {library_->ibv_reg_mr(pd_.get(), scratch_.get(), 1, IBV_ACCESS_LOCAL_WRITE),
                 library_->ibv_dereg_mr};
  if (!scratchKey_) return errnoStatus(fmt::format("registering a byte with {}", port_.device));
  // The service thread reads it until it is empty.
  fcntl(context_->async_fd, F_SETFL, fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK);
  return Status();
}

std::string pathName(const Nics& nics) {
  std::string devices;
  for (const auto& nic : nics) devices += (devices.empty() ? "" : "+") + nic->port().device;
  return fmt::format("{}, {}", devices, nics[0]->port().kind());
}

size_t largestPiece(const Nics& nics) {
  size_t largest = size_t{1} << 20;
  for (const auto& nic : nics) largest = std::min<size_t>(largest, nic->port().largest);
  return largest;
}

std::string Nic::trouble() const {
  ibv_port_attr attributes{};
  const int failed =
      library_->ibv_query_port(context_.get(), static_cast<uint8_t>(port_.number),
                               reinterpret_cast<struct _compat_ibv_port_attr*>(&attributes));
  if (failed != 0) return fmt::format("; device {} does not answer", port_.device);
  if (attributes.state != IBV_PORT_ACTIVE) return fmt::format("; port {} is down", port_.name());
  return "";
}

}  // namespace hmc::verbs
