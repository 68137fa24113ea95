#include "pool/pool_impl.h"

#include "base/error.h"
#include "base/host_id.h"
#include "memory/backends.h"
#include "node/node_defaults.h"
#include "pool/local_address.h"
#include "pool/served_store.h"
#include "store/group.h"

namespace hmc {

using pool::indexOf;
using pool::kSpaces;
using pool::nameOf;

Result<std::shared_ptr<PoolImpl>> PoolImpl::create(std::shared_ptr<store::Store> store,
                                                   const PoolOptions& given, Deadline deadline,
                                                   const std::string& listen) {
  PoolOptions options = given;
  HMC_ASSIGN(options.node, withEnvironment(given.node));
  pool::Preparation prepared(options);
  return create({nullptr, std::move(store)}, options, deadline, listen, prepared);
}

Result<std::shared_ptr<PoolImpl>> PoolImpl::create(pool::StoreOfPool store,
                                                   const PoolOptions& options, Deadline deadline,
                                                   const std::string& listen,
                                                   pool::Preparation& prepared) {
  HMC_ASSIGN(Backend * device, findBackend(options.device));
  HMC_ASSIGN(auto node, prepared.node.take());
  HMC_ASSIGN(const std::string bound, node->listen(listen));
  std::string address = node->advertised(bound);
  const pool::Wish wish{options.capacity,
                        {options.hostSize, options.deviceSize},
                        {options.hostStride, options.deviceStride}};
  HMC_ASSIGN(auto agreement, pool::Agreement::reach(store.client, options.name, wish, *device,
                                                    leaseOf(options.node), deadline));
  HMC_ASSIGN(auto memory, prepared.memory.take());
  std::shared_ptr<PoolImpl> pool(new PoolImpl(std::move(store), options, std::move(agreement),
                                              std::move(node), std::move(address),
                                              std::move(memory)));
  HMC_TRY(pool->allocateOnDevice());
  return pool;
}

PoolImpl::PoolImpl(pool::StoreOfPool store, const PoolOptions& options, pool::Agreement agreement,
                   std::shared_ptr<NodeImpl> node, std::string address,
                   std::shared_ptr<const Region> hostMemory)
    : options_(options),
      served_(std::move(store.served)),
      store_(std::move(store.client)),
      agreement_(std::move(agreement)),
      node_(std::move(node)),
      address_(std::move(address)),
      memory_{std::move(hostMemory), nullptr},
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

// Not before the addresses of the slots are reserved: a driver may take them for what it allocates.
Status PoolImpl::allocateOnDevice() {
  if (options_.deviceSize == 0) return Status();
  HMC_ASSIGN(memory_[indexOf(PoolSpace::device)],
             pool::allocateSlot(PoolSpace::device, options_.device, options_.deviceSize));
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
  group.ttl = leaseOf(options_.node);
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
  HMC_ASSIGN(joining.options.node, withEnvironment(joining.options.node));
  pool::Preparation prepared(joining.options);
  HMC_ASSIGN(auto opened, pool::openStoreOf(joining, deadline));
  std::string listen = options.listen;
  if (listen.empty()) {
    HMC_ASSIGN(listen, pool::listenAddressFor(joining.store));
  }
  HMC_ASSIGN(auto joined,
             PoolImpl::create(std::move(opened), joining.options, deadline, listen, prepared));
  HMC_TRY(joined->join(deadline));
  return joined;
}

Status PoolImpl::leave(Deadline deadline) {
  HMC_TRY(checkUsable());
  return members_->leave(deadline);
}

}  // namespace hmc
