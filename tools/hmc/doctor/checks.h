#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "hmc/info.h"
#include "hmc/node.h"

namespace hmc::tool {

// ok: works. warn: works, but not as well as it could. fail: the default path does not work.
enum class Level { ok, warn, fail };

// The result of one check.
struct Finding {
  Level level = Level::ok;
  std::string what;    // "memlock", a few words
  std::string detail;  // what it found, a sentence
  std::string fix;     // the command that fixes it; empty when all is well
};

// No finding is a failure.
bool healthy(const std::vector<Finding>& findings);

// Its commands as this user can type them: without sudo for root, and where there is no sudo as a
// word to become root.
enum class Privilege { root, sudo, none };
Privilege privilegeOfThisUser();
Finding forUser(Finding finding, Privilege privilege);

// A line each, and a line with the fix where there is one.
std::string toText(const Finding& finding);
// {"version", "healthy", "findings": [{"level", "what", "detail", "fix"}]}
std::string toJson(const std::vector<Finding>& findings);

// What this host allows. A check gets everything it judges as arguments, so that tests can show it
// broken machines; `root` is the folder that holds proc/, sys/ and dev/. The try functions and
// limitOf() ask the real machine.

struct Limit {
  static constexpr uint64_t kUnlimited = UINT64_MAX;
  uint64_t soft = kUnlimited;
  uint64_t hard = kUnlimited;
};
Limit limitOf(int resource);  // RLIMIT_...

// `tried` is tryProcessVm(): may a process that is not our ancestor read our memory?
Finding checkProcessVm(const std::string& root, const Status& tried);
Status tryProcessVm();

// `tried` is tryMemfd(): memory that peers can map.
Finding checkMemfd(const Status& tried);
Status tryMemfd();

// `report` is hmc::mappedMemoryReport().
Finding checkUserfaultfd(const Status& report);

Finding checkShm(const std::string& root);
// Matters where there is an RDMA device.
Finding checkMemlock(const std::string& root, const Limit& limit);
Finding checkHugePages(const std::string& root);
Finding checkDescriptors(const Limit& limit);
Finding checkPorts(const std::string& root);
// The library's variables in the environment.
Finding checkSettings(const std::vector<SettingReport>& settings);
Finding checkSecurity(const SecurityReport& security);

// All of the above, RDMA and accelerators, on this host.
std::vector<Finding> checkHost();

// What RDMA lacks on this host. RDMA is optional, so nothing here is a failure: without a device
// there is one line, and with a device every problem is a warning with its fix.

// The file through which one RDMA device is used, and whether it could be opened.
struct DeviceFile {
  std::string device;  // "mlx5_0"
  std::string path;    // "/dev/infiniband/uverbs0"
  int error = 0;       // errno
};
std::vector<DeviceFile> tryDeviceFiles(const std::string& root);

bool hasRdmaDevice(const std::string& root);

std::vector<Finding> checkRdma(const std::string& root, const std::vector<DeviceFile>& files,
                               const RdmaReport& report);

// What a host shows of one kind of accelerators, whether it can use them or not.
struct AcceleratorSigns {
  DeviceKind kind = DeviceKind::cuda;
  bool onPci = false;
  std::vector<DeviceFile> nodes;  // in /dev
  bool library = false;           // the runtime's, in this process
  std::string hiddenBy;           // "CUDA_VISIBLE_DEVICES=1"; empty when it is not set
  bool inContainer = false;
};
// Of every kind. memoryReport() goes first: it loads the libraries.
std::vector<AcceleratorSigns> findAccelerators(const std::string& root);

// A line for each kind that has devices or should have some; none for what a host shows no sign of.
std::vector<Finding> checkAccelerators(const std::vector<AcceleratorSigns>& found,
                                       const std::vector<MemoryReport>& reports);

// Why no Node could be made, with a fix that fits the reason.
Finding judgeNode(const Status& made);

// The outcome of a put over one transport, `path` when it worked. Only one that Nodes take unasked
// is part of the default path.
Finding judgePut(const std::string& transport, const Result<std::string>& path, bool isDefault);

// Does the library work on this host alone: can a Node open a listener, and does a put to another
// process arrive over each transport that can run here? Works only in the hmc program, which it
// starts again as the other process.
std::vector<Finding> checkLoopback();

// The parts of an address that a peer listens on.
struct PeerAddress {
  std::string address;  // "tcp://host:5001" or "unix:///path"
  std::string host;     // empty for a unix socket
  std::string port;
  std::string path;  // of a unix socket
};
Result<PeerAddress> parsePeerAddress(const std::string& text);

// The steps below our own protocol.
struct Reach {
  Finding name;     // was the host's name found?
  int problem = 0;  // errno of the attempt to connect, ETIMEDOUT when no answer came in time
};
Reach tryReach(const PeerAddress& target, std::chrono::milliseconds timeout);

// Judge the outcome of each step. `problem` is an errno, 0 when the connection was made.
Finding judgeReach(const PeerAddress& target, int problem, std::chrono::milliseconds timeout);
Finding judgeHello(const PeerAddress& target, const Status& hello, bool haveSecret);
// Whether the peer let us in although we proved nothing.
Finding judgeTrust(bool proven);
Finding judgeVersion(const std::string& ours, const Result<PeerFacts>& theirs);
Finding judgeClock(std::chrono::nanoseconds offset, std::chrono::nanoseconds roundTrip);
Finding judgePaths(const std::vector<PathReport>& paths);

// Name, reachability, hello, versions, clocks, round trip and path of the Node behind an address,
// as far as it gets, each within `timeout`.
std::vector<Finding> checkPeer(const std::string& address, const NodeOptions& options,
                               std::chrono::milliseconds timeout);

}  // namespace hmc::tool
