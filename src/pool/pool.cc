#include "hmc/pool.h"

#include "base/error.h"
#include "pool/pool_impl.h"

namespace hmc {

Status PoolTicket::wait(Timeout timeout) {
  return state_->wait(Deadline(timeout));
}
bool PoolTicket::done() {
  return state_->done();
}
Status PoolTicket::cancel() {
  return state_->cancel();
}
const std::vector<Status>& PoolTicket::outcomes() const {
  return state_->outcomes();
}

Result<Pool> Pool::join(const std::string& store, const PoolOptions& options, Timeout timeout) {
  const Deadline deadline(timeout);
  HMC_ASSIGN(auto joined, joinPool(store, options, deadline));
  return Pool(std::move(joined));
}

Pool::~Pool() = default;
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;

uint32_t Pool::rank() const {
  return impl_->members().rank();
}
uint32_t Pool::capacity() const {
  return impl_->layout().capacity;
}
std::vector<uint32_t> Pool::ranks() const {
  return impl_->members().ranks();
}
void* Pool::base(PoolSpace space) const {
  return impl_->addresses().at(space, 0);
}
size_t Pool::stride(PoolSpace space) const {
  return impl_->layout().ranges[pool::indexOf(space)].stride;
}
Result<PoolSlot> Pool::slot(uint32_t rank, PoolSpace space) const {
  return impl_->members().describe(space, rank);
}
Result<PoolSlot> Pool::slotOf(const void* address) const {
  const auto place = impl_->addresses().find(address);
  if (!place) return error(Code::notFound, "{} is not an address of the pool", address);
  return slot(place->rank, place->space);
}

Status Pool::copy(void* to, const void* from, size_t size, Timeout timeout) const {
  return impl_->copier().copy(to, from, size, timeout);
}

Status Pool::copy2d(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                    size_t rows, Timeout timeout) const {
  return impl_->copier().copy2d({to, toPitch, from, fromPitch, width, rows}, timeout);
}

Result<PoolTicket> Pool::startCopy(const std::vector<PoolCopy>& copies, Timeout timeout) const {
  HMC_ASSIGN(auto state, impl_->copier().start(copies, Deadline(timeout)));
  return PoolTicket(std::move(state));
}

Status Pool::registerMemory(void* data, size_t size) {
  return impl_->copier().registerMemory(data, size);
}
Status Pool::unregisterMemory(void* data) {
  return impl_->copier().unregisterMemory(data);
}

Result<PoolEvent> Pool::nextEvent(Timeout timeout) {
  HMC_TRY(impl_->checkUsable());
  if (auto event = impl_->members().events().pop(Deadline(timeout))) return *std::move(event);
  HMC_TRY(impl_->members().status());
  return error(Code::deadlineExceeded, "nobody joined or left the pool in time");
}
Result<int> Pool::eventFd() {
  return impl_->members().events().fd();
}

Status Pool::leave(Timeout timeout) {
  HMC_TRY(impl_->checkUsable());
  Status left = impl_->leave(Deadline(timeout));
  impl_->members().events().close();
  return left;
}

}  // namespace hmc
