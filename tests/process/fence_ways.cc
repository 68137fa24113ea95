#include "fence_ways.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "fakes/unseen_order.h"

namespace hmc::test {

namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = kKiB * kKiB;

bool runsHere(const std::string& transport) {
  NodeOptions options;
  options.transports = {transport};
  auto node = Node::create(options);
  if (!node.ok()) return false;
  for (const PathReport& path : node->transports()) {
    if (path.transport == transport) return path.usable;
  }
  return false;
}

}  // namespace

std::vector<Way> fenceWays() {
  // Up to 8 MiB into mapped memory are copied before startPut() returns, and the fake of verbs
  // copies what is posted at once, too. Lists are of more blocks than ipc's ring takes at a time.
  return {{"ipcMapped", "ipc", "allocated", "ipc (mapped)", 8 * kMiB + 64 * kKiB, 0},
          {"ipcProcessVm", "ipc", "own", "ipc (process_vm)", 8 * kMiB + 64 * kKiB, 0},
          {"ipcRing", "ipc", "own", "ipc (ring)", 2 * kMiB, 128 * kKiB},
          {"tcp", "tcp", "own", "tcp (2 streams)", kMiB, 2 * 256 * kKiB},
          {"tcpTls", "tcp", "own", "tcp (tls, 2 streams)", kMiB, 2 * 16 * kKiB, true},
          {"tcpStaged", "tcp", "device", "tcp", 2 * kMiB, 0},
          {"ucx", "ucx", "own", "ucx", kMiB, 316 * kKiB},
          {"verbs", "verbs", "own", "verbs", 8 * kMiB + 64 * kKiB, 0, false,
           std::getenv("HMC_TEST_FAKE_VERBS") != nullptr}};
}

Target::Target(const Way& way, size_t windows, std::chrono::milliseconds lease)
    : way_(way), size_(windows * way.size) {
  if (!runsHere(way.transport)) {
    whyNot_ = way.transport + " is not usable on this machine";
    return;
  }
  if (way.kind == "device" && memory_supported() != MemoryType::NVIDIA_GPU) {
    whyNot_ = "no CUDA device; HMC_MEMORY_PLUGIN can name a fake one";
    return;
  }
  if (way.inOneProcess) {
    here_ = std::make_unique<TargetProgram>();
  } else {
    Process::Environment environment;
    if (way.tls) environment = {{"HMC_TLS", "required"}, {"HMC_SECRET", "of the fence"}};
    process_ = std::make_unique<Process>(std::vector<std::string>{HMC_TEST_TARGET}, environment);
  }
  std::string file;
  if (way.kind == "own") {
    file_ = memfd_create("hmc-fence", MFD_CLOEXEC);
    void* view = ftruncate(file_, static_cast<off_t>(size_)) == 0
                     ? mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0)
                     : MAP_FAILED;
    if (view == MAP_FAILED) throw std::runtime_error("no memory for the target");
    view_ = static_cast<char*>(view);
    viewIsOurs_ = true;
    file = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }
  const Reply made = ask("node " + way.transport + " " + std::to_string(lease.count()));
  const Reply region = ask("region " + way.kind + " " + std::to_string(size_) + " " + file);
  if (!made.ok || !region.ok) whyNot_ = made.text + region.text;
  address_ = made.text;
}

Target::~Target() {
  if (viewIsOurs_) munmap(view_, size_);
  if (file_ >= 0) close(file_);
}

Reply Target::ask(const std::string& line) {
  if (process_) return process_->ask(line);
  const std::string answer = here_->obey(line);
  return {answer.rfind("ok", 0) == 0, "", answer.substr(std::min<size_t>(answer.size(), 3))};
}

void Target::opened(const RemoteRegion& remote) {
  if (way_.kind == "allocated") view_ = static_cast<char*>(remote.data());
}

std::string Target::range(size_t window, int byte) const {
  return std::to_string(window * way_.size) + " " + std::to_string(way_.size) + " " +
         std::to_string(byte);
}

void Target::reuse(size_t window, int byte) {
  if (view_) return fillWith(view_ + window * way_.size, way_.size, byte);
  const Reply reply = ask("reuse " + range(window, byte));
  if (!reply.ok) throw std::runtime_error("reuse: " + reply.text);
}

size_t Target::changed(size_t window, int byte) {
  if (view_) return differing(view_ + window * way_.size, way_.size, byte);
  const Reply reply = ask("changed " + range(window, byte));
  if (!reply.ok) throw std::runtime_error("changed: " + reply.text);
  return std::stoull(reply.text);
}

void fillWith(char* bytes, size_t size, int byte) {
  const Unseen order;
  std::memset(bytes, byte, size);
}

size_t differing(const char* bytes, size_t size, int byte) {
  const Unseen order;
  const char wanted = static_cast<char>(byte);
  // The usual answer, at the speed of memory.
  if (bytes[0] == wanted && std::memcmp(bytes, bytes + 1, size - 1) == 0) return 0;
  return size - static_cast<size_t>(std::count(bytes, bytes + size, wanted));
}

}  // namespace hmc::test
