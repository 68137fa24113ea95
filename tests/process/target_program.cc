#include "target_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>

#include "fakes/unseen_order.h"

namespace hmc::test {

namespace {

std::string answer(const Status& status, const std::string& text = "") {
  return status.ok() ? "ok " + text : "error " + status.toString();
}

}  // namespace

TargetProgram::~TargetProgram() {
  region_.reset();
  node_.reset();
  if (mapped_) munmap(mapped_, mappedSize_);
}

std::string TargetProgram::obey(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  in >> word;
  if (word == "node") return makeNode(in);
  if (word == "region") return makeRegion(in);
  if (word == "reuse") return reuse(in);
  if (word == "changed") return changed(in);
  return "error UNKNOWN " + line;
}

std::string TargetProgram::makeNode(std::istream& in) {
  NodeOptions options;
  std::string transport;
  int lease = 0;
  in >> transport >> lease;
  options.name = "target";
  options.transports = {transport};
  options.lease = std::chrono::milliseconds(lease);
  options.heartbeat = *options.lease / 8;
  auto node = Node::create(options);
  if (!node.ok()) return answer(node.status());
  node_.emplace(*std::move(node));
  auto address = node_->listen("tcp://127.0.0.1:0");
  return answer(address.status(), address.ok() ? *address : "");
}

std::string TargetProgram::makeRegion(std::istream& in) {
  std::string kind, file;
  size_t size = 0;
  in >> kind >> size >> file;
  if (kind == "own") {
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    mapped_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mappedSize_ = size;
    close(fd);
    if (mapped_ == MAP_FAILED) return "error FILE " + file + ": " + std::strerror(errno);
  }
  Device device;
  if (kind == "device") device = {DeviceKind::cuda, 0};
  auto region = kind == "own" ? node_->registerMemory("memory", mapped_, size)
                              : node_->allocate("memory", size, device);
  if (!region.ok()) return answer(region.status());
  region_.emplace(*std::move(region));
  return "ok";
}

std::string TargetProgram::reuse(std::istream& in) {
  size_t at = 0, size = 0;
  int byte = 0;
  in >> at >> size >> byte;
  const std::string bytes(size, static_cast<char>(byte));
  return answer(copyIn(at, bytes.data(), size));
}

std::string TargetProgram::changed(std::istream& in) {
  size_t at = 0, size = 0;
  int byte = 0;
  in >> at >> size >> byte;
  std::string bytes(size, '\0');
  const Status copied = copyOut(bytes.data(), at, size);
  const auto same = std::count(bytes.begin(), bytes.end(), static_cast<char>(byte));
  return answer(copied, std::to_string(size - static_cast<size_t>(same)));
}

Status TargetProgram::copyOut(void* to, size_t at, size_t size) const {
  char* from = static_cast<char*>(region_->data()) + at;
  if (region_->device().kind == DeviceKind::cpu) {
    Unseen order;
    std::memcpy(to, from, size);
    return Status();
  }
  const status_t done = Memory(0, MemoryType::NVIDIA_GPU).copyDeviceToHost(to, from, size);
  return done == status_t::SUCCESS ? Status() : lastStatus();
}

Status TargetProgram::copyIn(size_t at, const void* from, size_t size) const {
  char* to = static_cast<char*>(region_->data()) + at;
  if (region_->device().kind == DeviceKind::cpu) {
    Unseen order;
    std::memcpy(to, from, size);
    return Status();
  }
  const status_t done = Memory(0, MemoryType::NVIDIA_GPU).copyHostToDevice(to, from, size);
  return done == status_t::SUCCESS ? Status() : lastStatus();
}

}  // namespace hmc::test
