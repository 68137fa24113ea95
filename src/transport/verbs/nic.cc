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
    ibv_device_attr limits{};
    if (int failed = library->ibv_query_device(context.get(), &limits); failed != 0) {
      return errnoStatus(fmt::format("querying RDMA device {}", port.device), failed);
    }
    Handle<ibv_pd> pd(library->ibv_alloc_pd(context.get()), library->ibv_dealloc_pd);
    if (!pd) return errnoStatus(fmt::format("allocating a protection domain of {}", port.device));
    auto scratch = makePage<char>();
    Handle<ibv_mr> scratchKey(
        library->ibv_reg_mr(pd.get(), scratch.get(), 1, IBV_ACCESS_LOCAL_WRITE),
        library->ibv_dereg_mr);
    if (!scratchKey) return errnoStatus(fmt::format("registering a byte with {}", port.device));
    // The service thread reads it until it is empty.
    fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
    return std::unique_ptr<Nic>(new Nic(std::move(library), port, std::move(context), std::move(pd),
                                        limits, std::move(scratch), std::move(scratchKey)));
  }
  return error(Code::unsupported, "RDMA device {} is gone", port.device);
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
