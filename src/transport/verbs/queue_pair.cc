#include "transport/verbs/queue_pair.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/random.h"

namespace hmc::verbs {

namespace {

// An unanswered packet is sent again after 4.096 us * 2^16 = 0.27 s (hardware may take four times
// that), up to six times: a dead peer is noticed after some seconds, and a link that flaps
// survives. Not 7: soft-RoCE reads it as retry forever.
constexpr uint8_t kTimeout = 16;
constexpr uint8_t kRetries = 6;
constexpr uint8_t kRnrForever = 7;  // while the peer has no receive posted for a control message
constexpr uint8_t kRnrTimer = 12;   // 0.64 ms between such retries
constexpr int kReadDepth = 128;     // gets served at a time, where the NIC can do so many
constexpr uint32_t kPsnCount = 1 << 24;

constexpr int kCompletions = 16384;  // in one queue: for the queue pairs of a dozen peers

int readDepth(const Nic& nic) {
  return std::clamp(nic.limits().max_qp_rd_atom, 1, kReadDepth);
}

}  // namespace

Result<std::unique_ptr<CompletionQueues>> CompletionQueues::create(const Nic& nic) {
  const Library& library = nic.library();
  Handle<ibv_comp_channel> channel(library.ibv_create_comp_channel(nic.context()),
                                   library.ibv_destroy_comp_channel);
  if (!channel)
    return errnoStatus(fmt::format("creating a completion channel of {}", nic.port().name()));
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  return std::unique_ptr<CompletionQueues>(new CompletionQueues(nic, std::move(channel)));
}

Result<CompletionQueues::Room> CompletionQueues::reserve(int entries) {
  std::lock_guard lock(mutex_);
  for (Queue& queue : queues_) {
    if (queue.free < entries) continue;
    queue.free -= entries;
    return Room(queue.handle.get(), {this, entries});
  }
  const Library& library = nic_.library();
  const int size = std::max(entries, std::min(kCompletions, nic_.limits().max_cqe));
  Handle<ibv_cq> made(library.ibv_create_cq(nic_.context(), size, nullptr, channel_.get(), 0),
                      library.ibv_destroy_cq);
  if (!made) {
    return errnoStatus(
        fmt::format("creating a completion queue of {} entries of {}", size, nic_.port().name()));
  }
  // The descriptor is armed for all of them or for none.
  ibv_req_notify_cq(made.get(), 0);
  queues_.push_back({std::move(made), size - entries});
  return Room(queues_.back().handle.get(), {this, entries});
}

void CompletionQueues::release(ibv_cq* queue, int entries) {
  std::lock_guard lock(mutex_);
  for (Queue& one : queues_) {
    if (one.handle.get() == queue) one.free += entries;
  }
}

void CompletionQueues::keep(std::shared_ptr<void> pointedTo) {
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(pointedTo));
}

void CompletionQueues::arm() {
  std::lock_guard lock(mutex_);
  for (const Queue& queue : queues_) ibv_req_notify_cq(queue.handle.get(), 0);
}

void CompletionQueues::acknowledge() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (nic_.library().ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
    nic_.library().ibv_ack_cq_events(queue, 1);
  }
}

uint32_t randomPsn() {
  return static_cast<uint32_t>(randomU64() % kPsnCount);
}

PortAddress portAddressOf(const Nic& nic) {
  const Port& port = nic.port();
  return {port.gid.bytes, port.lid, static_cast<uint8_t>(port.mtu),
          static_cast<uint8_t>(readDepth(nic)), port.ethernet};
}

Result<QueuePair> QueuePair::create(CompletionQueues& queues, const Depth& depth, Serves serves) {
  const Nic& nic = queues.nic();
  HMC_ASSIGN(auto room, queues.reserve(depth.sends + depth.receives));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = room.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = static_cast<uint32_t>(depth.sends);
  wanted.cap.max_recv_wr = static_cast<uint32_t>(depth.receives);
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  const Library& library = nic.library();
  // No query tells how much a device can inline: ask for less until it agrees.
  ibv_qp* made = nullptr;
  for (int inlined = depth.inlined; !made; inlined /= 2) {
    wanted.cap.max_inline_data = static_cast<uint32_t>(inlined);
    made = library.ibv_create_qp(nic.pd(), &wanted);
    if (!made && inlined == 0) {
      return errnoStatus(fmt::format("creating a queue pair of {}", nic.port().name()));
    }
  }
  QueuePair pair(std::move(room), Handle<ibv_qp>(made, library.ibv_destroy_qp),
                 wanted.cap.max_inline_data, serves);
  HMC_TRY(pair.toInit());
  return pair;
}

Status QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* what) {
  const int failed = nic().library().ibv_modify_qp(handle_.get(), &attributes, mask);
  if (failed == 0) return Status();
  return errnoStatus(fmt::format("{} a queue pair of {}", what, nic().port().name()),
                     failed > 0 ? failed : errno);
}

Status QueuePair::toInit() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<uint8_t>(nic().port().number);
  if (serves_ == Serves::peer) {
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  }
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                "preparing");
}

Status QueuePair::toReceive(const QpAddress& to, const PortAddress& peer) {
  const Port& port = nic().port();
  if (peer.ethernet != port.ethernet) {
    return error(Code::unsupported, "{} is {}, the peer's port is {}", port.name(),
                 port.ethernet ? "Ethernet" : "InfiniBand",
                 peer.ethernet ? "Ethernet" : "InfiniBand");
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(port.mtu, static_cast<ibv_mtu>(peer.mtu));
  attributes.dest_qp_num = to.number;
  attributes.rq_psn = to.psn;
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(readDepth(nic()));
  attributes.min_rnr_timer = kRnrTimer;
  attributes.ah_attr.dlid = peer.lid;
  attributes.ah_attr.port_num = static_cast<uint8_t>(port.number);
  // Always with the GID: RoCE needs it, and so does InfiniBand between subnets.
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.sgid_index = static_cast<uint8_t>(port.gid.index);
  attributes.ah_attr.grh.hop_limit = 64;
  std::copy(peer.gid.begin(), peer.gid.end(), attributes.ah_attr.grh.dgid.raw);
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                "connecting");
}

Status QueuePair::toSend(const PortAddress& peer, uint32_t psn) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = kTimeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRnrForever;
  attributes.sq_psn = psn;
  attributes.max_rd_atomic = static_cast<uint8_t>(std::clamp<int>(
      std::min<int>(nic().limits().max_qp_init_rd_atom, peer.readDepth), 1, kReadDepth));
  return modify(attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "starting");
}

Status QueuePair::connect(const QpAddress& to, const PortAddress& peer, uint32_t psn) {
  HMC_TRY(toReceive(to, peer));
  return toSend(peer, psn);
}

void QueuePair::stop() {
  ibv_qp_attr attributes{.qp_state = IBV_QPS_ERR};
  (void)modify(attributes, IBV_QP_STATE, "stopping");
}

Status QueuePair::reset() {
  ibv_qp_attr attributes{.qp_state = IBV_QPS_RESET};
  HMC_TRY(modify(attributes, IBV_QP_STATE, "resetting"));
  return toInit();
}

}  // namespace hmc::verbs
