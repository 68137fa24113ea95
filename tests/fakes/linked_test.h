#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "transport/transport.h"

namespace hmc::test {

// Two ends of a link: our own, of an Engine or a Transport, and that of a peer.
template <class Origin>
class LinkedTest : public testing::Test {
 protected:
  std::unique_ptr<Origin> a_;
  std::unique_ptr<Transport> b_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Link> back_;
  std::unique_ptr<Registration> fromHost_;
  std::unique_ptr<Registration> target_;
  std::unique_ptr<RemoteMemory> memory_;
};

}  // namespace hmc::test
