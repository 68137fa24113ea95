#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/address.h"
#include "transport/verbs/library.h"

namespace hmc::verbs {

// Which ports to use and how, as the user has set it.
struct PortSettings {
  std::vector<std::string> ports;  // "mlx5_0", "mlx5_1:2"; empty: all
  std::optional<int> gidIndex;
  std::optional<int> mtu;  // 256, 512, 1024, 2048 or 4096

  // HMC_RDMA_DEVICES, HMC_RDMA_GID_INDEX, HMC_RDMA_MTU.
  static Result<PortSettings> fromEnvironment();
};

// One port of one device.
struct Port {
  std::string device;
  int number = 1;
  bool usable = false;
  std::string problem;  // with a usable port too: "has link-local addresses only"
  std::string fix;
  bool soft = false;  // no hardware: soft-RoCE
  bool ethernet = false;
  double gbits = 0;
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;
  uint32_t largest = 0;  // bytes in one message
  Gid gid;

  std::string name() const { return device + ":" + std::to_string(number); }  // "mlx5_0:1"
  std::string kind() const;      // "RoCE v2", "soft-RoCE"
  std::string describe() const;  // "RoCE v2, GID 3 (10.0.0.1), MTU 4096, 100 Gb/s"
};

using DeviceList = std::unique_ptr<ibv_device*, void (*)(ibv_device**)>;
DeviceList listDevices(const Library& library);

Result<Handle<ibv_context>> openDevice(const Library& library, ibv_device* device);

// Every port of every device that libibverbs finds, best first: usable, then hardware, then rate.
// Ports that the settings leave out are not among them; a name in them that is not there is an
// error.
Result<std::vector<Port>> findPorts(const Library& library, const PortSettings& settings);

// Why findPorts() found none, with the fix, as far as the system shows.
Status explainNoDevice(const std::string& sysfs = "/sys", const std::string& dev = "/dev");

// Our own registered memory has a page to itself: old kernels hide registered pages from the
// children of fork().
inline constexpr size_t kPage = 4096;
using Page = std::unique_ptr<void, void (*)(void*)>;
inline Page makePage() {
  return {std::aligned_alloc(kPage, kPage), std::free};
}

// An open device and the port of it that we use. Safe from any thread.
class Nic {
 public:
  static Result<std::unique_ptr<Nic>> open(std::shared_ptr<const Library> library,
                                           const Port& port);

  const Library& library() const { return *library_; }
  const Port& port() const { return port_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  const ibv_device_attr& limits() const { return limits_; }
  int asyncFd() const { return context_->async_fd; }
  // A byte for reads that only wait for earlier writes.
  ibv_sge scratch() const {
    return {reinterpret_cast<uint64_t>(scratch_.get()), 1, scratchKey_->lkey};
  }

  // The port's state, where it explains a failure: "; port mlx5_0:1 is down".
  std::string trouble() const;

 private:
  Nic(std::shared_ptr<const Library> library, const Port& port)
      : library_(std::move(library)), port_(port) {}
  Status prepare(Handle<ibv_context> context);

  const std::shared_ptr<const Library> library_;
  const Port port_;
  Handle<ibv_context> context_{nullptr, nullptr};
  Handle<ibv_pd> pd_{nullptr, nullptr};
  ibv_device_attr limits_{};
  const Page scratch_ = makePage();
  Handle<ibv_mr> scratchKey_{nullptr, nullptr};
};

using Nics = std::vector<std::unique_ptr<Nic>>;

// "mlx5_0+mlx5_1, RoCE v2"
std::string pathName(const Nics& nics);
// The most bytes of one operation: at most what all of them take, large enough to keep them busy,
// and small enough to be spread over channels and to be cancelled.
size_t largestPiece(const Nics& nics);

}  // namespace hmc::verbs
