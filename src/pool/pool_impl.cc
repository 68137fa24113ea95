#include "pool/pool_impl.h"

#include "base/error.h"
#include "base/host_id.h"
#include "memory/backends.h"
#include "pool/local_address.h"
#include "pool/numa.h"
#include "pool/served_store.h"
#include "store/group.h"

namespace hmc {

using pool::indexOf;
using pool::kSpaces;
using pool::nameOf;

namespace {

Device deviceOf(const PoolOptions& options, PoolSpace space) {
  return space == PoolSpace::host ? Device{} : options.device;
}

size_t sizeOf(const PoolOptions& options, PoolSpace space) {
  return space == PoolSpace::host ? options.hostSize : options.deviceSize;
}

std::shared_ptr<const Region> owned(const Region& region, Backend& backend) {
  return {new Region(region), [&backend](const Region* memory) {
            (void)backend.release(memory->ptr);
            delete memory;
          }};
}

}  // namespace

Result<std::shared_ptr<PoolImpl>> PoolImpl::create(std::shared_ptr<store::Store> store,
                                                   const PoolOptions& options, Deadline deadline,
                                                   const std::string& listen,
                                                   std::unique_ptr<pool::ServedStore> served) {
  HMC_ASSIGN(Backend * device, findBackend(options.device));
  HMC_ASSIGN(auto node, NodeImpl::create(options.node));
  HMC_ASSIGN(std::string address, node->listen(listen));
  const pool::Wish wish{options.capacity,
                        {options.hostSize, options.deviceSize},
                        {options.hostStride, options.deviceStride}};
  HMC_ASSIGN(auto agreement, pool::Agreement::reach(store, options.name, wish, *device,
                                                    options.node.lease, deadline));
  std::shared_ptr<PoolImpl> pool(new PoolImpl(std::move(store), options, std::move(served),
                                              std::move(agreement), std::move(node),
                                              std::move(address)));
  HMC_TRY(pool->allocate());
  return pool;
}

PoolImpl::PoolImpl(std::shared_ptr<store::Store> store, const PoolOptions& options,
                   std::unique_ptr<pool::ServedStore> served, pool::Agreement agreement,
                   std::shared_ptr<NodeImpl> node, std::string address)
    : options_(options),
      served_(std::move(served)),
      store_(std::move(store)),
      agreement_(std::move(agreement)),
      node_(std::move(node)),
      address_(std::move(address)),
      members_(std::make_unique<pool::Members>(*node_, agreement_.addresses)),
      copier_(std::make_unique<pool::Copier>(*node_, agreement_.addresses, *members_)) {}

PoolImpl::~PoolImpl() {
  if (fork_.inChild()) return;
  (void)leave(node_->lease());
  node_->close();
}

Status PoolImpl::checkUsable() const {
  return fork_.inChild() ? ForkGuard::refusal() : Status();
}

Status PoolImpl::allocate() {
  for (PoolSpace space : kSpaces) {
    const size_t size = sizeOf(options_, space);
    if (size == 0) continue;
    const Device device = deviceOf(options_, space);
    HMC_ASSIGN(Backend * backend, findBackend(device));
    pool::OnNumaNode where(space == PoolSpace::host ? options_.numaNode : std::nullopt);
    HMC_TRY(where.status());
    auto region = backend->allocate(device.index, size);
    if (!region.ok())
      return region.status().within(fmt::format("the {} slot of the pool", nameOf(space)));
    memory_[indexOf(space)] = owned(*region, *backend);
    HMC_TRY(where.keep(*region));
  }
  return Status();
}

Result<pool::Members::Own> PoolImpl::exportOwn() const {
  pool::Members::Own own;
  for (PoolSpace space : kSpaces) {
    const auto& memory = memory_[indexOf(space)];
    if (!memory) continue;
    HMC_ASSIGN(own[indexOf(space)],
               node_->registerMemory(nameOf(space), *memory, Access::readWrite, false, memory));
  }
  return own;
}

Status PoolImpl::join(Deadline deadline) {
  HMC_TRY(checkUsable());
  if (members_->status().ok()) return Status();
  // Others may have taken us for dead: then we come back as somebody new.
  (void)members_->leave(deadline);
  HMC_ASSIGN(auto own, exportOwn());
  pool::Record record;
  record.address = address_;
  record.node = node_->id();
  record.host = hostId();
  record.layout = layout().encode();
  record.sizes = {options_.hostSize, options_.deviceSize};
  record.device = options_.device.kind;
  store::GroupOptions group;
  group.name = "pool." + options_.name;
  group.capacity = layout().capacity;
  group.rank = options_.rank;
  group.description = record.encode();
  group.ttl = options_.node.lease;
  group.describe = [](const std::string& description) {
    const auto known = pool::Record::decode(description);
    return known.ok() ? "the process at " + known->address : std::string();
  };
  HMC_ASSIGN(auto membership, store::Group::join(store_, group, deadline));
  return members_->join(std::move(membership), own, deadline);
}

Result<std::shared_ptr<PoolImpl>> joinPool(const std::string& store, const PoolOptions& options,
                                           Deadline deadline) {
  pool::Joining joining{store, options, false};
  if (store.empty()) {
    HMC_ASSIGN(const auto launch, pool::readLaunch());
    HMC_ASSIGN(joining, pool::joiningFrom(launch, options));
  }
  HMC_ASSIGN(auto opened, pool::openStoreOf(joining, deadline));
  std::string listen = options.listen;
  if (listen.empty()) {
    HMC_ASSIGN(listen, pool::listenAddressFor(joining.store));
  }
  HMC_ASSIGN(auto joined, PoolImpl::create(std::move(opened.client), joining.options, deadline,
                                           listen, std::move(opened.served)));
  HMC_TRY(joined->join(deadline));
  return joined;
}

Status PoolImpl::leave(Deadline deadline) {
  HMC_TRY(checkUsable());
  return members_->leave(deadline);
}

}  // namespace hmc
