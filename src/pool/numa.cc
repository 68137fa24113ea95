#include "pool/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

namespace hmc::pool {

namespace {
constexpr int kWordBits = 8 * sizeof(unsigned long);
}  // namespace

OnNumaNode::OnNumaNode(std::optional<int> node) {
  if (!node) return;
  constexpr int kMost = static_cast<int>(kWords) * kWordBits;
  if (*node < 0 || *node >= kMost) {
    status_ =
        error(Code::invalidArgument, "NUMA node {} cannot be: they are 0 to {}", *node, kMost - 1);
    return;
  }
  mask_[static_cast<size_t>(*node / kWordBits)] = 1UL << (*node % kWordBits);
  if (syscall(SYS_get_mempolicy, &before_, maskBefore_.data(), kMost, nullptr, 0) != 0 ||
      syscall(SYS_set_mempolicy, MPOL_BIND, mask_.data(), kMost) != 0) {
    status_ = errnoStatus(fmt::format("place memory on NUMA node {}", *node));
    return;
  }
  changed_ = true;
}

Status OnNumaNode::keep(const Region& region) const {
  constexpr int kMost = static_cast<int>(kWords) * kWordBits;
  if (!changed_) return Status();
  if (syscall(SYS_mbind, region.ptr, region.size, MPOL_BIND, mask_.data(), kMost, 0) == 0)
    return Status();
  return errnoStatus("keep memory on its NUMA node");
}

OnNumaNode::~OnNumaNode() {
  constexpr int kMost = static_cast<int>(kWords) * kWordBits;
  if (changed_) (void)syscall(SYS_set_mempolicy, before_, maskBefore_.data(), kMost);
}

}  // namespace hmc::pool
