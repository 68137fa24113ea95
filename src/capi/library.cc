#include "capi/library.h"

#include "base/error.h"

namespace hmc::capi {

Library& Library::get() {
  // Never destroyed: other threads may be in a call while the process exits.
  static std::atomic<Library*> current{new Library};
  Library* library = current.load(std::memory_order_acquire);
  if (library->fork_.inChild()) [[unlikely]] {
    auto* fresh = new Library;
    if (current.compare_exchange_strong(library, fresh)) return *fresh;
    delete fresh;
  }
  return *library;
}

void Library::keep(std::shared_ptr<pool::ServedStore> served) {
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(served));
}

void Library::destroyPool(void* handle) {
  auto pool = pools.take(handle, [](const BigMemory&) {});
  if (!pool) return;
  const uint32_t id = pool->id();
  pool.reset();
  poolIds.giveBack(id);
}

Status Library::destroyObject(void* handle) {
  auto object = objects.take(handle, [](SharedMemory& used) { used.memory->interrupt(); });
  if (!object) return error(Code::invalidArgument, "there is no object with the handle {}", handle);
  const uint32_t id = object->memory->options().id;
  object.reset();
  objectIds.giveBack(id);
  return Status();
}

void Library::destroyEngine(void* handle) {
  engines.take(handle, [](const agent::Agent&) {}).reset();
}

void Library::closeBm() {
  const SessionPtr ended = write(bm_, nullptr);
  for (void* handle : pools.handles()) destroyPool(handle);
}

void Library::closeShm() {
  const SessionPtr ended = write(shm_, nullptr);
  for (void* handle : objects.handles()) (void)destroyObject(handle);
}

void Library::closeTrans() {
  transInitialised.store(false);
  for (void* handle : engines.handles()) destroyEngine(handle);
}

void Library::closeAll() {
  closeTrans();
  closeShm();
  closeBm();
  std::vector<std::shared_ptr<pool::ServedStore>> kept;  // end after the lock
  std::lock_guard lock(mutex_);
  kept.swap(kept_);
}

namespace {
thread_local int callbacks = 0;
}  // namespace

InCallback::InCallback() {
  ++callbacks;
}

InCallback::~InCallback() {
  --callbacks;
}

ChangeTurn::ChangeTurn(Library& library, Deadline deadline)
    : Turn(library.changes, callbacks > 0 ? Deadline::now() : deadline) {}

}  // namespace hmc::capi
