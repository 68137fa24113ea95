#include "hmc/collective.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/group_impl.h"
#include "collective/operation.h"
#include "collective/reduce.h"
#include "memory/host_copy.h"

namespace hmc {

namespace {

using collective::GroupImpl;
using collective::Operation;

// What ranks have to agree on. Different sizes seldom have the same one.
enum class Kind : uint32_t {
  barrier,
  broadcast,
  exchange,
  allgather,
  alltoall,
  allreduce,
  scatter
};
uint32_t signatureOf(Kind kind, size_t size = 0, uint32_t detail = 0) {
  const uint64_t mixed = (uint64_t{size} * 8 + static_cast<uint32_t>(kind)) * 0x9e3779b97f4a7c15;
  return static_cast<uint32_t>(mixed >> 32) ^ detail;
}

Status checkNumbers(DataType type, ReduceOp op) {
  if (type > DataType::float64 || op > ReduceOp::max) {
    return error(Code::invalidArgument, "type {} or operation {} is none that HMC has",
                 static_cast<int>(type), static_cast<int>(op));
  }
  return Status();
}

uint32_t detailOf(DataType type, ReduceOp op) {
  return static_cast<uint32_t>(type) * 8 + static_cast<uint32_t>(op);
}

}  // namespace

size_t sizeOf(DataType type) {
  constexpr std::array<size_t, 12> kSizes{1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return type <= DataType::float64 ? kSizes[static_cast<size_t>(type)] : 0;
}

Result<Collective> Collective::begin(const CollectiveOptions& options) {
  HMC_ASSIGN(auto impl, GroupImpl::begin(options));
  return Collective(std::move(impl));
}
Collective::Collective(std::unique_ptr<GroupImpl> impl) : impl_(std::move(impl)) {}
Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;
Collective& Collective::operator=(Collective&&) noexcept = default;

uint32_t Collective::rank() const {
  return impl_->rank();
}
uint32_t Collective::size() const {
  return impl_->size();
}
const std::string& Collective::address() const {
  return impl_->address();
}
std::string Collective::path(uint32_t rank) const {
  return impl_->path(rank);
}
Status Collective::status(uint32_t rank) const {
  return impl_->status(rank);
}
Status Collective::connect(const std::vector<std::string>& addresses, Timeout timeout) {
  return impl_->connect(addresses, Deadline(timeout));
}

Status Collective::barrier(Timeout timeout) {
  return impl_->run("barrier", signatureOf(Kind::barrier), timeout, collective::meet);
}

Status Collective::broadcast(void* data, size_t size, uint32_t root, Timeout timeout) {
  if (root >= impl_->size()) {
    return error(Code::invalidArgument, "root is {}: the group has ranks 0 to {}", root,
                 impl_->size() - 1);
  }
  return impl_->run("broadcast", signatureOf(Kind::broadcast, size, root), timeout,
                    [&](Operation& operation) {
                      return collective::spread(operation, static_cast<char*>(data), size, root);
                    });
}

Status Collective::exchange(const std::vector<ExchangePart>& parts, Timeout timeout) {
  if (parts.size() != impl_->size()) {
    return error(Code::invalidArgument, "{} parts for a group of {} ranks", parts.size(),
                 impl_->size());
  }
  const ExchangePart& own = parts[impl_->rank()];
  if (own.outSize != own.inSize) {
    return error(Code::invalidArgument, "our own part has {} bytes to send and {} to receive",
                 own.outSize, own.inSize);
  }
  return impl_->run("exchange", signatureOf(Kind::exchange), timeout,
                    [&](Operation& operation) { return collective::exchange(operation, parts); });
}

Status Collective::allgather(const void* sent, void* received, size_t size, Timeout timeout) {
  std::vector<ExchangePart> parts(impl_->size());
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank] = {sent, size, static_cast<char*>(received) + rank * size, size};
  }
  return impl_->run("allgather", signatureOf(Kind::allgather, size), timeout,
                    [&](Operation& operation) { return collective::exchange(operation, parts); });
}

Status Collective::alltoall(const void* sent, void* received, size_t size, Timeout timeout) {
  std::vector<ExchangePart> parts(impl_->size());
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank] = {static_cast<const char*>(sent) + rank * size, size,
                   static_cast<char*>(received) + rank * size, size};
  }
  return impl_->run("alltoall", signatureOf(Kind::alltoall, size), timeout,
                    [&](Operation& operation) { return collective::exchange(operation, parts); });
}

Status Collective::allreduce(void* data, size_t count, DataType type, ReduceOp op,
                             Timeout timeout) {
  HMC_TRY(checkNumbers(type, op));
  constexpr size_t kSmall = size_t{32} << 10;
  const size_t each = sizeOf(type);
  const size_t ranks = impl_->size();
  const auto combine = collective::combineOf(type, op);
  auto* bytes = static_cast<char*>(data);
  return impl_->run("allreduce", signatureOf(Kind::allreduce, count * each, detailOf(type, op)),
                    timeout, [&](Operation& operation) {
                      if (ranks == 1) return Status();
                      if (ranks == 2 || count * each <= kSmall) {
                        return collective::reduceEverywhere(operation, bytes, count * each,
                                                            combine);
                      }
                      std::vector<size_t> bounds(ranks + 1);
                      std::vector<const char*> parts(ranks);
                      for (size_t rank = 0; rank <= ranks; ++rank) {
                        bounds[rank] = count / ranks * rank + std::min(count % ranks, rank);
                        bounds[rank] *= each;
                        if (rank < ranks) parts[rank] = bytes + bounds[rank];
                      }
                      return collective::reduceParts(
                          operation, parts, bytes + bounds[impl_->rank()], bounds, combine, bytes);
                    });
}

Status Collective::reduceScatter(const void* sent, void* received, size_t count, DataType type,
                                 ReduceOp op, Timeout timeout) {
  std::vector<const void*> parts(impl_->size());
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank] = static_cast<const char*>(sent) + count * sizeOf(type) * rank;
  }
  return reduceScatter(parts, received, count, type, op, timeout);
}

Status Collective::reduceScatter(const std::vector<const void*>& sent, void* received, size_t count,
                                 DataType type, ReduceOp op, Timeout timeout) {
  HMC_TRY(checkNumbers(type, op));
  if (sent.size() != impl_->size()) {
    return error(Code::invalidArgument, "{} parts for a group of {} ranks", sent.size(),
                 impl_->size());
  }
  const size_t size = count * sizeOf(type);
  std::vector<size_t> bounds(impl_->size() + 1);
  for (size_t rank = 0; rank < bounds.size(); ++rank) bounds[rank] = size * rank;
  std::vector<const char*> parts(sent.size());
  std::transform(sent.begin(), sent.end(), parts.begin(),
                 [](const void* part) { return static_cast<const char*>(part); });
  return impl_->run("reduce-scatter", signatureOf(Kind::scatter, size, detailOf(type, op)), timeout,
                    [&](Operation& operation) {
                      if (impl_->size() == 1) {
                        if (size != 0 && received != parts[0]) copyHost(received, parts[0], size);
                        return Status();
                      }
                      return collective::reduceParts(operation, parts, static_cast<char*>(received),
                                                     bounds, collective::combineOf(type, op),
                                                     nullptr);
                    });
}

}  // namespace hmc
