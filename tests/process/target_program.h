#pragma once

#include <hmc/memory.h>
#include <hmc/node.h>

#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace hmc::test {

// What the target of a transfer can be told to do: see target_main.cc. Uses the public headers
// only.
class TargetProgram {
 public:
  ~TargetProgram();
  // The answer to one line: "ok ..." or "error CODE sentence".
  std::string obey(const std::string& line);

 private:
  // "node TRANSPORT LEASE_MS": makes one that listens, and answers its address.
  std::string makeNode(std::istream& in);
  // "region KIND SIZE FILE": registers the file's bytes (own), or allocates host memory (allocated)
  // or a device's (device).
  std::string makeRegion(std::istream& in);
  // "reuse AT SIZE BYTE": writes that byte everywhere.
  std::string reuse(std::istream& in);
  // "changed AT SIZE BYTE": how many bytes are another one.
  std::string changed(std::istream& in);
  Status copyOut(void* to, size_t at, size_t size) const;
  Status copyIn(size_t at, const void* from, size_t size) const;

  std::optional<Node> node_;
  std::optional<LocalRegion> region_;
  void* mapped_ = nullptr;
  size_t mappedSize_ = 0;
};

}  // namespace hmc::test
