#include "pool/agreement.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace hmc::pool {

namespace {

uint64_t roundUp(uint64_t size) {
  return (size + kSlotUnit - 1) / kSlotUnit * kSlotUnit;
}

// One process on its way to the layout of one pool.
class Negotiation {
 public:
  Negotiation(store::Store& store, const std::string& name, const Wish& wish, Backend& device,
              Deadline deadline)
      : store_(store),
        name_(name),
        layoutKey_("pools/" + name + "/layout"),
        users_("pools/" + name + "/users/"),
        wish_(wish),
        device_(device),
        deadline_(deadline) {}

  // From now on nobody replaces the layout. Once we know it, our key holds it: a store that has
  // lost its memory gets it back with the keys of our lease.
  Status announce(const std::shared_ptr<store::KeyLease>& lease, const std::string& layout = "") {
    return store_.set(users_ + self_, layout, deadline_, lease);
  }

  Result<AddressSpace> run() {
    while (true) {
      auto known = store_.get(layoutKey_, deadline_);
      if (known.status().code() == Code::notFound) {
        HMC_ASSIGN(const bool restored, restore());
        if (restored) continue;
        HMC_ASSIGN(auto mine, propose(std::nullopt));
        if (mine) return *std::move(mine);
        continue;
      }
      if (!known.ok()) return known.status();
      auto theirs = adopt(*known);
      if (theirs.ok()) return theirs;
      HMC_ASSIGN(const bool abandoned, nobodyElse());
      if (!abandoned) return theirs;
      HMC_ASSIGN(auto mine, propose(*known));
      if (mine) return *std::move(mine);
    }
  }

 private:
  Result<Layout> wanted() const {
    Layout layout;
    layout.capacity = wish_.capacity;
    if (layout.capacity == 0 || layout.capacity > kMostRanks) {
      return error(Code::invalidArgument,
                   "the first member of pool \"{}\" must say how many there may be: a capacity of "
                   "1 to {}, not {}",
                   name_, kMostRanks, layout.capacity);
    }
    for (PoolSpace space : kSpaces) {
      const size_t i = indexOf(space);
      layout.ranges[i].stride = roundUp(std::max(wish_.strides[i], wish_.sizes[i]));
    }
    return layout;
  }

  // Nothing when another process was quicker.
  Result<std::optional<AddressSpace>> propose(const std::optional<std::string>& instead) {
    HMC_ASSIGN(const Layout layout, wanted());
    HMC_ASSIGN(auto addresses, AddressSpace::choose(layout, device_));
    std::optional<std::string_view> before;
    if (instead) before = *instead;
    HMC_ASSIGN(const auto swap,
               store_.compareAndSet(layoutKey_, before, addresses.layout().encode(), deadline_));
    if (!swap.done) return std::optional<AddressSpace>();
    return std::optional<AddressSpace>(std::move(addresses));
  }

  // The layout is gone, but not those who use it. False when nobody does.
  Result<bool> restore() {
    HMC_ASSIGN(const auto users, store_.list(users_, deadline_));
    for (const store::Entry& user : users) {
      if (user.value.empty()) continue;
      HMC_TRY(store_.compareAndSet(layoutKey_, std::nullopt, user.value, deadline_).status());
      return true;
    }
    return false;
  }

  Result<AddressSpace> adopt(const std::string& bytes) const {
    HMC_ASSIGN(const Layout layout, Layout::decode(bytes));
    if (wish_.capacity != 0 && wish_.capacity != layout.capacity) {
      return error(Code::invalidArgument,
                   "pool \"{}\" has a capacity of {}, and this process asks for {}: all members "
                   "need the same, or 0",
                   name_, layout.capacity, wish_.capacity);
    }
    for (PoolSpace space : kSpaces) {
      const size_t i = indexOf(space);
      const uint64_t stride = layout.ranges[i].stride;
      if (wish_.strides[i] != 0 && roundUp(wish_.strides[i]) != stride) {
        return error(Code::invalidArgument,
                     "pool \"{}\" has {} slots {} bytes apart, and this process asks for {}: all "
                     "members need the same, or 0",
                     name_, nameOf(space), stride, wish_.strides[i]);
      }
      if (wish_.sizes[i] > stride) {
        return error(Code::outOfRange,
                     "{} bytes of {} memory do not fit into a slot of pool \"{}\", which has {}: "
                     "its first member decides with its stride",
                     wish_.sizes[i], nameOf(space), name_, stride);
      }
    }
    return AddressSpace::reserve(layout, device_);
  }

  Result<bool> nobodyElse() const {
    HMC_ASSIGN(const auto users, store_.list(users_, deadline_));
    return std::all_of(users.begin(), users.end(),
                       [&](const store::Entry& user) { return user.key == users_ + self_; });
  }

  store::Store& store_;
  const std::string name_;
  const std::string layoutKey_;
  const std::string users_;
  const std::string self_ = hex(randomBytes(8));
  const Wish wish_;
  Backend& device_;
  const Deadline deadline_;
};

}  // namespace

Result<Agreement> Agreement::reach(const std::shared_ptr<store::Store>& store,
                                   const std::string& name, const Wish& wish, Backend& device,
                                   std::chrono::milliseconds ttl, Deadline deadline) {
  HMC_ASSIGN(auto held, store->lease(ttl, deadline));
  Negotiation negotiation(*store, name, wish, device, deadline);
  HMC_TRY(negotiation.announce(held));
  HMC_ASSIGN(auto addresses, negotiation.run());
  HMC_TRY(negotiation.announce(held, addresses.layout().encode()));
  return Agreement{std::move(addresses), std::move(held)};
}

}  // namespace hmc::pool
