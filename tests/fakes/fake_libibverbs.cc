// A libibverbs.so.1 with two devices, whose packets are copies within this process: what is in the
// header's tables works as on a NIC, errors included. Loaded by the real loader, so that the verbs
// transport is tested, with sanitizers too, where there is no RDMA device.
#include "fakes/fake_libibverbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "fakes/fake_verbs_regions.h"

#undef ibv_query_port
#undef ibv_reg_mr

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

struct FakeCq {
  ibv_cq base{};
  std::deque<ibv_wc> ended;
  bool armed = false;
};

struct FakeQp {
  ibv_qp base{};
  FakeCq* sends = nullptr;
  FakeCq* receives = nullptr;
  ibv_qp_state state = IBV_QPS_RESET;
  unsigned access = 0;
  uint32_t to = 0;
  std::deque<ibv_recv_wr> waiting;  // their one piece is in `places`
  std::deque<ibv_sge> places;
  std::deque<ibv_send_wr> unanswered;  // sent while the peer was not there
  std::deque<ibv_sge> unansweredPieces;
};

// Everything of this process; one mutex, because speed is no matter.
struct World {
  std::recursive_mutex mutex;
  std::map<uint32_t, FakeQp*> pairs;
  hmc::test::FakeRegions regions;
  uint32_t next = 100;
  std::vector<ibv_context*> contexts;
  int refusals = 0;     // calls of post_send that fail, from the next one on
  int brokenReads = 0;  // reads at which the connection breaks, from the next one on
  int reads = 0;        // that went well
};
World& world() {
  static auto* all = new World;
  return *all;
}

ibv_device all[2];
ibv_device* devices[] = {&all[0], &all[1], nullptr};

void announce(FakeCq& queue) {
  if (!queue.armed) return;
  queue.armed = false;
  eventfd_write(queue.base.channel->fd, 1);
}

void end(FakeCq& queue, uint64_t id, uint32_t pair, ibv_wc_status status, uint32_t bytes) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.status = status;
  wc.qp_num = pair;
  wc.byte_len = bytes;
  queue.ended.push_back(wc);
  announce(queue);
}

void breakDown(FakeQp& pair) {
  pair.state = IBV_QPS_ERR;
  for (; !pair.unanswered.empty(); pair.unanswered.pop_front())
    end(*pair.sends, pair.unanswered.front().wr_id, pair.base.qp_num, IBV_WC_WR_FLUSH_ERR, 0);
  pair.unansweredPieces.clear();
  for (; !pair.waiting.empty(); pair.waiting.pop_front())
    end(*pair.receives, pair.waiting.front().wr_id, pair.base.qp_num, IBV_WC_WR_FLUSH_ERR, 0);
  pair.places.clear();
}

FakeQp* peerOf(const FakeQp& pair) {
  auto found = world().pairs.find(pair.to);
  if (found == world().pairs.end()) return nullptr;
  const ibv_qp_state state = found->second->state;
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS ? found->second : nullptr;
}

// The peer's bytes of a request; null when it does not allow that.
char* theirBytes(const FakeQp& peer, const ibv_send_wr& request, uint32_t bytes) {
  const unsigned need =
      request.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  return (peer.access & need) != 0 ? world().regions.theirs(request, bytes) : nullptr;
}

// One request, all the way. False when it waits for the peer.
bool carry(FakeQp& pair, const ibv_send_wr& request, const ibv_sge& piece) {
  FakeQp* peer = peerOf(pair);
  if (!peer) return false;
  char* here = world().regions.ours(piece);
  char* there = request.opcode == IBV_WR_SEND ? nullptr : theirBytes(*peer, request, piece.length);
  if (request.opcode == IBV_WR_SEND) {
    if (peer->waiting.empty()) return false;
    std::memcpy(reinterpret_cast<void*>(peer->places.front().addr), here, piece.length);
    end(*peer->receives, peer->waiting.front().wr_id, peer->base.qp_num, IBV_WC_SUCCESS,
        piece.length);
    peer->waiting.pop_front();
    peer->places.pop_front();
  } else if (!there) {
    end(*pair.sends, request.wr_id, pair.base.qp_num, IBV_WC_REM_ACCESS_ERR, 0);
    breakDown(pair);
    breakDown(*peer);
    return true;
  } else if (request.opcode == IBV_WR_RDMA_READ && world().brokenReads > 0) {
    --world().brokenReads;
    end(*pair.sends, request.wr_id, pair.base.qp_num, IBV_WC_WR_FLUSH_ERR, 0);
    breakDown(pair);
    breakDown(*peer);
    return true;
  } else {
    if (request.opcode == IBV_WR_RDMA_READ) ++world().reads;
    if (request.opcode == IBV_WR_RDMA_WRITE) std::memcpy(there, here, piece.length);
    if (request.opcode == IBV_WR_RDMA_READ) std::memcpy(here, there, piece.length);
  }
  if (request.send_flags & IBV_SEND_SIGNALED)
    end(*pair.sends, request.wr_id, pair.base.qp_num, IBV_WC_SUCCESS, piece.length);
  return true;
}

// The peer has come, or has room again.
void carryOn(FakeQp& pair) {
  while (!pair.unanswered.empty()) {
    const ibv_send_wr request = pair.unanswered.front();
    const ibv_sge piece = pair.unansweredPieces.front();
    if (!carry(pair, request, piece)) return;
    if (pair.unanswered.empty()) return;  // it broke
    pair.unanswered.pop_front();
    pair.unansweredPieces.pop_front();
  }
}

void carryOnWith(uint32_t number) {
  for (auto& [ignored, pair] : world().pairs) {
    if (pair->to == number && pair->state == IBV_QPS_RTS) carryOn(*pair);
  }
}

int postSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  std::lock_guard lock(world().mutex);
  if (world().refusals > 0) {
    --world().refusals;
    *refused = request;
    return ENOMEM;
  }
  auto& pair = *reinterpret_cast<FakeQp*>(qp);
  for (; request; request = request->next) {
    if (pair.state == IBV_QPS_ERR) {
      end(*pair.sends, request->wr_id, qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
    } else if (!pair.unanswered.empty() || !carry(pair, *request, request->sg_list[0])) {
      pair.unanswered.push_back(*request);
      pair.unansweredPieces.push_back(request->sg_list[0]);
    }
  }
  return 0;
}

int postReceive(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr**) {
  std::lock_guard lock(world().mutex);
  auto& pair = *reinterpret_cast<FakeQp*>(qp);
  if (pair.state == IBV_QPS_ERR) {
    end(*pair.receives, request->wr_id, qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
    return 0;
  }
  pair.waiting.push_back(*request);
  pair.places.push_back(request->sg_list[0]);
  carryOnWith(qp->qp_num);
  return 0;
}

int pollCq(ibv_cq* cq, int most, ibv_wc* out) {
  std::lock_guard lock(world().mutex);
  auto& queue = *reinterpret_cast<FakeCq*>(cq);
  int count = 0;
  for (; count < most && !queue.ended.empty(); ++count) {
    out[count] = queue.ended.front();
    queue.ended.pop_front();
  }
  return count;
}

int arm(ibv_cq* cq, int) {
  std::lock_guard lock(world().mutex);
  reinterpret_cast<FakeCq*>(cq)->armed = true;
  return 0;
}

}  // namespace

FAKE ibv_device** ibv_get_device_list(int* count) {
  *count = 2;
  return devices;
}
FAKE void ibv_free_device_list(ibv_device**) {}
FAKE const char* ibv_get_device_name(ibv_device* device) {
  return device == &all[0] ? "fake0" : "fake1";
}
FAKE ibv_context* ibv_open_device(ibv_device* which) {
  auto* context = new ibv_context{};
  context->device = which;
  context->async_fd = eventfd(0, EFD_CLOEXEC);
  std::lock_guard lock(world().mutex);
  world().contexts.push_back(context);
  context->ops.post_send = postSend;
  context->ops.post_recv = postReceive;
  context->ops.poll_cq = pollCq;
  context->ops.req_notify_cq = arm;
  return context;
}
FAKE int ibv_close_device(ibv_context* context) {
  std::lock_guard lock(world().mutex);
  std::erase(world().contexts, context);
  close(context->async_fd);
  delete context;
  return 0;
}
FAKE int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->phys_port_cnt = 1;
  attributes->max_mr_size = ~uint64_t{0};
  attributes->max_cqe = 4000;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  return 0;
}
FAKE int ibv_query_port(ibv_context*, uint8_t, struct _compat_ibv_port_attr* out) {
  auto* port = reinterpret_cast<ibv_port_attr*>(out);
  port->state = IBV_PORT_ACTIVE;
  port->active_mtu = port->max_mtu = IBV_MTU_4096;
  port->link_layer = IBV_LINK_LAYER_ETHERNET;
  port->max_msg_sz = 1 << 30;
  port->gid_tbl_len = 1;
  return 0;
}
FAKE int ibv_query_gid(ibv_context*, uint8_t, int, ibv_gid* gid) {
  const uint8_t bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  std::memcpy(gid->raw, bytes, sizeof(bytes));
  return 0;
}
FAKE ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
FAKE int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
FAKE ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  std::lock_guard lock(world().mutex);
  return world().regions.add(pd, address, length, access);
}
FAKE ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                               int access) {
  std::lock_guard lock(world().mutex);
  return world().regions.addDmabuf(pd, offset, length, iova, fd, access);
}
FAKE int ibv_dereg_mr(ibv_mr* region) {
  std::lock_guard lock(world().mutex);
  world().regions.remove(region);
  return 0;
}
FAKE ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new ibv_comp_channel{context, eventfd(0, EFD_CLOEXEC), 0};
}
FAKE int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete channel;
  return 0;
}
FAKE ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel,
                           int) {
  auto* queue = new FakeCq;
  queue->base.context = context;
  queue->base.channel = channel;
  queue->base.cqe = entries;
  return &queue->base;
}
FAKE int ibv_destroy_cq(ibv_cq* cq) {
  delete reinterpret_cast<FakeCq*>(cq);
  return 0;
}
FAKE int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void**) {
  eventfd_t count;
  *cq = nullptr;
  return eventfd_read(channel->fd, &count);
}
FAKE void ibv_ack_cq_events(ibv_cq*, unsigned) {}
FAKE ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  std::lock_guard lock(world().mutex);
  auto* pair = new FakeQp;
  pair->base.context = pd->context;
  pair->base.qp_num = world().next++;
  pair->sends = reinterpret_cast<FakeCq*>(wanted->send_cq);
  pair->receives = reinterpret_cast<FakeCq*>(wanted->recv_cq);
  // As some devices do: it takes no more than this along with a request.
  if (wanted->cap.max_inline_data > 64) {
    delete pair;
    errno = EINVAL;
    return nullptr;
  }
  world().pairs[pair->base.qp_num] = pair;
  return &pair->base;
}
FAKE int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  std::lock_guard lock(world().mutex);
  auto& pair = *reinterpret_cast<FakeQp*>(qp);
  if (mask & IBV_QP_ACCESS_FLAGS) pair.access = attributes->qp_access_flags;
  if (mask & IBV_QP_DEST_QPN) pair.to = attributes->dest_qp_num;
  if (attributes->qp_state == IBV_QPS_ERR) {
    breakDown(pair);
    return 0;
  }
  pair.state = attributes->qp_state;
  if (pair.state == IBV_QPS_RTR) carryOnWith(qp->qp_num);
  return 0;
}
FAKE int ibv_destroy_qp(ibv_qp* qp) {
  std::lock_guard lock(world().mutex);
  world().pairs.erase(qp->qp_num);
  delete reinterpret_cast<FakeQp*>(qp);
  return 0;
}
FAKE int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  eventfd_t count;
  *event = {};
  event->event_type = IBV_EVENT_DEVICE_FATAL;
  return eventfd_read(context->async_fd, &count);
}
FAKE void ibv_ack_async_event(ibv_async_event*) {}
FAKE const char* ibv_event_type_str(ibv_event_type) {
  return "an event";
}
FAKE const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_REM_ACCESS_ERR ? "remote access error" : "an error";
}
FAKE int ibv_fork_init() {
  return 0;
}

// For tests: how memory is registered.
FAKE hmc::test::FakeRegistering* fakeRegistering() {
  return &world().regions.registering;
}
// For tests: the device reports that it has failed.
FAKE void fakeDeviceFails() {
  std::lock_guard lock(world().mutex);
  for (ibv_context* context : world().contexts) eventfd_write(context->async_fd, 1);
}
// For tests: the connection breaks at so many reads; how many went well.
FAKE void fakeBreaksAtReads(int times) {
  std::lock_guard lock(world().mutex);
  world().brokenReads = times;
}
FAKE int fakeReads() {
  std::lock_guard lock(world().mutex);
  return world().reads;
}
// For tests: it takes no work.
FAKE void fakeRefuses(int times) {
  std::lock_guard lock(world().mutex);
  world().refusals = times;
}
