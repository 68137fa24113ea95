// A rank that uses the device header in its host build, together with smem_shm.h. All ranks are
// told the same at the same time: "ok", or "error WRONG" and the line of the check that failed.

#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "device_object.h"
#include "device_use.h"

namespace {

std::string checkGetters(const Object& object) {
  const auto id = object.context.id;
  const std::string text = "object " + std::to_string(id) + " of rank " +
                           std::to_string(smem_shm_get_global_rank(object.handle));
  CHECK(smem_shm_get_global_rank(id) == smem_shm_get_global_rank(object.handle));
  CHECK(smem_shm_get_global_rank(static_cast<int>(id)) == object.context.rank);
  CHECK(smem_shm_get_global_rank(object.context) == object.context.rank);
  CHECK(smem_shm_get_global_rank_size(id) == smem_shm_get_global_rank_size(object.handle));
  CHECK(smem_shm_get_global_rank_size(uint64_t{id}) == object.ranks());
  CHECK(smem_shm_get_global_rank_size(object.context) == object.ranks());
  CHECK(smem_shm_get_symmetric_size(id) == object.context.symmetricSize);
  CHECK(smem_shm_get_symmetric_size(object.context) == object.context.symmetricSize);
  // Set after the object was bound.
  CHECK(smem_shm_get_extra_context_size(id) == 0);
  CHECK(smem_shm_set_extra_context(object.handle, text.data(), uint32_t(text.size())) == 0);
  CHECK(smem_shm_get_extra_context_size(id) == text.size());
  CHECK(smem_shm_get_extra_context_size(object.context) == text.size());
  const char* const context = static_cast<const char*>(smem_shm_get_extra_context_addr(id));
  CHECK(std::string(context, text.size()) == text);
  CHECK(smem_shm_get_extra_context_addr(object.context) == context);
  // The table is the process's.
  CHECK(rankInOtherFile(id) == object.context.rank);
  return answer(0);
}

std::string checkDefaults(const Object& object) {
  CHECK(smem_shm_get_global_rank() == object.context.rank);
  CHECK(smem_shm_get_global_rank(0) == object.context.rank);
  CHECK(smem_shm_get_global_rank_size() == object.ranks());
  CHECK(smem_shm_get_global_rank_size(0) == object.ranks());
  CHECK(smem_shm_get_symmetric_size() == object.context.symmetricSize);
  CHECK(smem_shm_get_extra_context_size() > 0);
  CHECK(smem_shm_get_extra_context_addr() == object.context.extraContext);
  CHECK(smem_shm_ptr(object.at<int>(8), object.next()) ==
        smem_shm_ptr(object.context, object.at<int>(8), object.next()));
  CHECK(smem_shm_barrier_all() == 0);
  return answer(0);
}

std::string checkUnbound(uint32_t id) {
  int some = 0;
  CHECK(smem_shm_get_global_rank(id) == UINT32_MAX);
  CHECK(smem_shm_get_global_rank_size(id) == UINT32_MAX);
  CHECK(smem_shm_get_symmetric_size(id) == 0);
  CHECK(smem_shm_get_extra_context_size(id) == 0);
  CHECK(smem_shm_get_extra_context_addr(id) == nullptr);
  CHECK(smem_shm_ptr(&some, 0, id) == nullptr);
  CHECK(smem_shm_put(&some, &some, 0, 1, id) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_get(&some, &some, 0, 1, id) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_barrier_all(id) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_unbind(id) != 0);
  return answer(0);
}

// Data, then a flag, around the ring and again, as often as there are rounds.
std::string checkFlags(const Object& object) {
  constexpr int64_t kRounds = 100;
  const uint64_t place = 65536;
  int64_t ub = 0;
  int64_t* const flag = object.own<int64_t>(place);
  int64_t* const data = object.own<int64_t>(place + 64);
  int64_t* const nextFlag = smem_shm_ptr(object.context, flag, object.next());
  for (int64_t round = 1; round <= kRounds; ++round) {
    const int64_t sent = round * 1000 + object.context.rank;
    if (object.context.rank != 0) {
      CHECK(smem_shm_wait_flag(&ub, flag, round) == 0 && ub == round);
      CHECK(*data == round * 1000 + object.previous());
    }
    CHECK(smem_shm_put(object.context, data, &sent, object.next(), 1) == 0);
    if (round % 2 == 0) smem_shm_set_flag(nextFlag, round);
    if (round % 2 == 1) smem_shm_set_flag(&ub, nextFlag, round);
    if (object.context.rank == 0) {
      CHECK(smem_shm_wait_at_least(flag, round) == 0);
      CHECK(*data == round * 1000 + object.previous());
    }
  }
  // Nobody sets it any more.
  const uint64_t began = smem_shm_now();
  CHECK(smem_shm_wait_flag(flag, 0, 20000000) == SMEM_TIMEOUT);
  CHECK(smem_shm_wait_flag(&ub, flag, -1, 0) == SMEM_TIMEOUT && ub == kRounds);
  CHECK(smem_shm_now() - began >= 20000000);
  // Counters pass zero.
  uint32_t counter = 3;
  CHECK(smem_shm_wait_at_least(&counter, UINT32_MAX - 1) == 0);
  CHECK(smem_shm_wait_at_least(&counter, 4, 1000) == SMEM_TIMEOUT);
  CHECK(smem_shm_barrier_all(object.context) == 0);
  return answer(0);
}

std::string checkAtomics(const Object& object) {
  constexpr uint32_t kTimes = 500;
  uint32_t* const narrow = object.at<uint32_t>(131072);
  int64_t* const wide = object.at<int64_t>(131136);
  uint32_t* const lock = object.at<uint32_t>(131200);
  volatile uint64_t* const guarded = object.at<uint64_t>(131264);
  for (uint32_t i = 0; i < kTimes; ++i) {
    smem_shm_atomic_add(narrow, 3);
    smem_shm_atomic_add(wide, -2);
    while (smem_shm_atomic_cas(lock, 0, 1) != 0) smem_shm_relax(64);
    *guarded = *guarded + 1;
    CHECK(smem_shm_atomic_exchange(lock, 0) == 1);
  }
  smem_shm_quiet();
  CHECK(smem_shm_barrier_all(object.context) == 0);
  CHECK(smem_shm_load(narrow) == 3 * kTimes * object.ranks());
  CHECK(smem_shm_load(wide) == -2 * int64_t{kTimes} * object.ranks());
  CHECK(*guarded == uint64_t{kTimes} * object.ranks());
  CHECK(smem_shm_atomic_cas(object.own<int64_t>(131328), 1, 5) == 0);
  CHECK(smem_shm_atomic_cas(object.own<int64_t>(131328), 0, 5) == 0);
  CHECK(smem_shm_load(object.own<int64_t>(131328)) == 5);
  return answer(0);
}

// In every round everyone writes its number to everyone, and must find everyone's.
std::string checkBarriers(const Object& object, uint32_t rounds) {
  const uint64_t place = 262144;
  for (uint32_t round = 1; round <= rounds; ++round) {
    for (uint32_t peer = 0; peer < object.ranks(); ++peer) {
      *smem_shm_ptr(object.context, object.at<uint32_t>(place) + object.context.rank, peer) = round;
    }
    CHECK(smem_shm_barrier_all(object.context) == 0);
    for (uint32_t peer = 0; peer < object.ranks(); ++peer)
      CHECK(object.own<uint32_t>(place)[peer] == round);
    CHECK(smem_shm_barrier_all(object.context, SMEM_SHM_WAIT_NS, smem_shm_block()) == 0);
  }
  return answer(0);
}

// Slots that host code cannot touch. Barriers it can: their words are host memory.
std::string checkDevice(const Object& object) {
  int some = 0;
  CHECK(object.context.device == 0);
  CHECK(smem_shm_put(object.context, object.at<int>(0), &some, 0, 1) == SMEM_INVALID_PARAM);
  CHECK(smem_shm_ptr(object.context, object.at<int>(0), object.next()) != nullptr);
  for (int i = 0; i < 100; ++i) CHECK(smem_shm_barrier_all(object.context) == 0);
  return answer(0);
}

// Of ranks on two hosts, one that is not reached and one that is.
std::string checkFar(const Object& object, uint32_t far, uint32_t near) {
  int* const first = object.at<int>(0);
  const int sent = 7;
  CHECK(object.context.sync == nullptr);
  CHECK(smem_shm_barrier_all(object.context) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_ptr(object.context, first, far) == nullptr);
  CHECK(smem_shm_put(object.context, first, &sent, far, 1) == SMEM_OBJECT_NOT_EXISTS);
  CHECK(smem_shm_put(object.context, first, &sent, near, 1) == 0);
  CHECK(*smem_shm_ptr(object.context, first, near) == sent);
  return answer(0);
}

class DevicePeer {
 public:
  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "shm") return start(in);
    uint32_t id = 0;
    in >> id;
    if (word == "object") return create(id, in);
    if (word == "unbound") return checkUnbound(id);
    const Object& object = objects_[id];
    if (word == "drop") return answer(smem_shm_destroy(object.handle, 0));
    if (word == "unbind") return answer(smem_shm_unbind(id));
    if (word == "bind") return answer(smem_shm_bind(object.handle));
    if (word == "meet") return answer(smem_shm_barrier_all(object.context));
    if (word == "alone") return answer(smem_shm_barrier_all(object.context, 5000000));
    uint32_t first = 0, second = 0;
    in >> first >> second;
    if (word == "barrier") return checkBarriers(object, first);
    if (word == "far") return checkFar(object, first, second);
    const std::map<std::string, std::function<std::string(const Object&)>> checks = {
        {"getters", checkGetters}, {"defaults", checkDefaults}, {"put", checkPut},
        {"typed", checkTyped},     {"errors", checkErrors},     {"rows", checkRows},
        {"flags", checkFlags},     {"atomics", checkAtomics},   {"device", checkDevice}};
    const auto found = checks.find(word);
    return found == checks.end() ? "error UNKNOWN " + word : found->second(object);
  }

 private:
  // "shm URL WORLD RANK"
  static std::string start(std::istream& in) {
    std::string url;
    uint32_t world = 0, rank = 0;
    in >> url >> world >> rank;
    smem_shm_config_t config;
    smem_shm_config_init(&config);
    if (int32_t code = smem_init(0)) return answer(code);
    return answer(smem_shm_init(url.c_str(), world, rank, 0, &config));
  }
  // "object ID RANKS RANK"
  std::string create(uint32_t id, std::istream& in) {
    uint32_t ranks = 0, rank = 0;
    in >> ranks >> rank;
    Object made = {};
    void* base = nullptr;
    made.handle = smem_shm_create(id, ranks, rank, uint64_t(2) << 20, SMEMS_DATA_OP_MTE, 0, &base);
    if (!made.handle) return answer(-1);
    made.base = static_cast<char*>(base);
    const int32_t code =
        smem_shm_get_device_context(made.handle, &made.context, sizeof(made.context));
    objects_[id] = made;
    return answer(code);
  }

  std::map<uint32_t, Object> objects_;
};

}  // namespace

int main() {
  DevicePeer peer;
  std::string line;
  while (std::getline(std::cin, line)) std::cout << peer.obey(line) << std::endl;
  smem_uninit();
  return 0;
}
