// A rank that does what it is told, a line at a time: "ok ..." or "error CODE sentence".

#include <smem_bm.h>
#include <smem_security.h>
#include <smem_shm.h>
#include <smem_shm_v2.h>
#include <smem_v2.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

namespace {

std::string answer(int32_t code, const std::string& text = "") {
  if (code == 0) return "ok " + text;
  return "error " + std::to_string(code) + " " + smem_get_last_err_msg();
}

std::string wrong(const std::string& text) {
  return "error WRONG " + text;
}

class SmemPeer {
 public:
  SmemPeer() {
    addStarting();
    addPools();
    addObjects();
    addLaterOnes();
  }

  std::string obey(const std::string& line) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    auto found = commands_.find(word);
    return found == commands_.end() ? "error UNKNOWN " + word : found->second(in);
  }

 private:
  using Command = std::function<std::string(std::istream&)>;

  template <class T>
  static T next(std::istream& in, T otherwise = T()) {
    T value;
    return in >> value ? value : otherwise;
  }

  // "bm URL WORLD RANK [SERVE] [SECONDS]", RANK -1 for an automatic one
  static std::string startBm(std::istream& in) {
    smem_bm_config_t config;
    smem_bm_config_init(&config);
    const auto url = next<std::string>(in);
    const auto world = next<uint32_t>(in);
    const int rank = next<int>(in);
    config.autoRanking = rank < 0;
    if (rank >= 0) config.rankId = static_cast<uint16_t>(rank);
    config.startConfigStore = next<int>(in, 1) != 0;
    const auto seconds = next<uint32_t>(in, 60);
    config.initTimeout = config.createTimeout = config.controlOperationTimeout = seconds;
    if (int32_t code = smem_init(0)) return answer(code);
    if (int32_t code = smem_bm_init(url.c_str(), world, 0, &config)) return answer(code);
    return answer(0, std::to_string(smem_bm_get_rank_id()));
  }

  // "shm URL WORLD RANK [SERVE] [SECONDS] [SECONDS OF CREATE]"
  static std::string startShm(std::istream& in) {
    smem_shm_config_t config;
    smem_shm_config_init(&config);
    const auto url = next<std::string>(in);
    const auto world = next<uint32_t>(in);
    const auto rank = next<uint32_t>(in);
    config.startConfigStore = next<int>(in, 1) != 0;
    config.controlOperationTimeout = next<uint32_t>(in, 60);
    config.shmInitTimeout = 60;
    config.shmCreateTimeout = next<uint32_t>(in, 60);
    if (int32_t code = smem_init(0)) return answer(code);
    return answer(smem_shm_init(url.c_str(), world, rank, 0, &config));
  }

  // "tls TOP CA CERTIFICATE KEY [PASSWORD] [LISTS]": files in TOP
  static std::string protect(std::istream& in) {
    std::string words[6];
    for (std::string& word : words) in >> word;
    smem_tls_option option;
    option.enableTls = true;
    option.tlsTopPath = words[0].c_str();
    option.tlsCaFile = words[1].c_str();
    option.tlsCert = words[2].c_str();
    option.tlsPk = words[3].c_str();
    option.tlsPkPwd = words[4].c_str();
    option.tlsCrlFile = words[5].c_str();
    return answer(smem_set_ssl_option(&option));
  }

  // "tlskey PASSWORD TEXT", where | ends a line of the text; the password is turned around
  static std::string setKey(std::istream& in) {
    std::string password;
    std::string text;
    std::getline(in >> password >> std::ws, text);
    std::replace(text.begin(), text.end(), '|', '\n');
    const smem_decrypt_handler turn = [](const char* cipher, size_t size, char* plain,
                                         size_t* room) -> int {
      if (size > *room) return 1;
      std::reverse_copy(cipher, cipher + size, plain);
      *room = size;
      return 0;
    };
    return answer(smem_set_config_store_tls_key(text.data(), static_cast<uint32_t>(text.size()),
                                                password.data(),
                                                static_cast<uint32_t>(password.size()), turn));
  }

  void addStarting() {
    commands_["tls"] = protect;
    commands_["notls"] = [](std::istream&) {
      const smem_tls_option option;
      return answer(smem_set_ssl_option(&option));
    };
    // "tlsinfo TEXT"
    commands_["tlsinfo"] = [](std::istream& in) {
      std::string text;
      std::getline(in, text);
      return answer(smem_set_conf_store_tls(true, text.data(), static_cast<uint32_t>(text.size())));
    };
    commands_["tlskey"] = setKey;
    commands_["bm"] = startBm;
    commands_["shm"] = startShm;
    commands_["endbm"] = [this](std::istream&) {
      smem_bm_uninit(0);
      pools_.clear();
      return answer(0);
    };
    commands_["endshm"] = [this](std::istream&) {
      smem_shm_uninit(0);
      objects_.clear();
      return answer(0);
    };
    // With everything open.
    commands_["exit"] = [](std::istream& in) -> std::string { std::exit(next<int>(in)); };
    commands_["end"] = [this](std::istream&) {
      smem_uninit();
      pools_.clear();
      objects_.clear();
      return answer(0);
    };
  }

  static std::vector<char> pattern(size_t size, unsigned seed) {
    std::vector<char> bytes(size);
    for (size_t i = 0; i < size; ++i)
      bytes[i] = static_cast<char>((i * 131 + seed * 29 + (i >> 8)) & 0xFF);
    return bytes;
  }

  // "put ID RANK OFFSET SIZE SEED" and "check ID RANK OFFSET SIZE SEED"
  std::string copy(std::istream& in, bool put) {
    void* const pool = pools_[next<uint32_t>(in)];
    char* const slot = static_cast<char*>(smem_bm_ptr(pool, next<uint16_t>(in)));
    if (!slot) return answer(-1);
    char* const at = slot + next<size_t>(in);
    const auto size = next<size_t>(in);
    auto bytes = pattern(size, next<unsigned>(in));
    if (put) return answer(smem_bm_copy(pool, bytes.data(), at, size, SMEMB_COPY_H2G, 0));
    std::vector<char> got(size);
    const int32_t code = smem_bm_copy(pool, at, got.data(), size, SMEMB_COPY_G2H, 0);
    return code == 0 && got != bytes ? wrong("other bytes") : answer(code);
  }

  void addPools() {
    // "create ID DRAM HBM"
    commands_["create"] = [this](std::istream& in) {
      const auto id = next<uint32_t>(in);
      const auto dram = next<uint64_t>(in);
      const auto hbm = next<uint64_t>(in);
      pools_[id] = smem_bm_create(id, 0, SMEMB_DATA_OP_SDMA, dram, hbm, 0);
      return answer(pools_[id] ? 0 : -1);
    };
    commands_["join"] = [this](std::istream& in) {
      void* slot = nullptr;
      return answer(smem_bm_join(pools_[next<uint32_t>(in)], 0, &slot));
    };
    commands_["leave"] = [this](std::istream& in) {
      return answer(smem_bm_leave(pools_[next<uint32_t>(in)], 0));
    };
    commands_["destroy"] = [this](std::istream& in) {
      smem_bm_destroy(pools_[next<uint32_t>(in)]);
      return answer(0);
    };
    commands_["put"] = [this](std::istream& in) { return copy(in, true); };
    commands_["check"] = [this](std::istream& in) { return copy(in, false); };
    // "move ID FROM TO OFFSET SIZE": between two slots, with a type that fits neither
    commands_["move"] = [this](std::istream& in) {
      void* const pool = pools_[next<uint32_t>(in)];
      const auto from = next<uint16_t>(in);
      const auto to = next<uint16_t>(in);
      return answer(smem_bm_copy(pool, smem_bm_ptr(pool, from), smem_bm_ptr(pool, to), 64,
                                 SMEMB_COPY_H2G, 0));
    };
  }

  // "allgather ID SIZE ROUNDS": every byte of rank r in round n is r + n
  std::string allgather(std::istream& in) {
    void* const object = objects_[next<uint32_t>(in)];
    const auto size = next<uint32_t>(in);
    const auto rounds = next<uint32_t>(in, 1);
    const uint32_t rank = smem_shm_get_global_rank(object);
    const uint32_t ranks = smem_shm_get_global_rank_size(object);
    std::vector<char> all(size_t{size} * ranks);
    for (uint32_t round = 0; round < rounds; ++round) {
      const std::vector<char> mine(size, static_cast<char>(rank + round));
      const int32_t code = smem_shm_control_allgather(object, mine.data(), size, all.data(),
                                                      static_cast<uint32_t>(all.size()));
      if (code != 0) return answer(code);
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i] != static_cast<char>(i / size + round))
          return wrong("byte " + std::to_string(i));
      }
    }
    return answer(0);
  }

  void addObjects() {
    // "object ID RANKS RANK SIZE"
    commands_["object"] = [this](std::istream& in) {
      const auto id = next<uint32_t>(in);
      const auto ranks = next<uint32_t>(in);
      const auto rank = next<uint32_t>(in);
      void* base = nullptr;
      objects_[id] =
          smem_shm_create(id, ranks, rank, next<uint64_t>(in), SMEMS_DATA_OP_MTE, 0, &base);
      return answer(objects_[id] ? 0 : -1);
    };
    commands_["barrier"] = [this](std::istream& in) {
      void* const object = objects_[next<uint32_t>(in)];
      int32_t code = 0;
      for (auto left = next<uint32_t>(in, 1); left > 0 && code == 0; --left)
        code = smem_shm_control_barrier(object);
      return answer(code);
    };
    commands_["allgather"] = [this](std::istream& in) { return allgather(in); };
    commands_["context"] = [this](std::istream& in) {
      void* const object = objects_[next<uint32_t>(in)];
      const std::vector<char> bytes(next<size_t>(in), 'c');
      return answer(
          smem_shm_set_extra_context(object, bytes.data(), static_cast<uint32_t>(bytes.size())));
    };
    commands_["drop"] = [this](std::istream& in) {
      return answer(smem_shm_destroy(objects_[next<uint32_t>(in)], 0));
    };
    commands_["reach"] = [this](std::istream& in) {
      void* const object = objects_[next<uint32_t>(in)];
      uint32_t reach = 0;
      const int32_t code = smem_shm_topology_can_reach(object, next<uint32_t>(in), &reach);
      return answer(code, std::to_string(reach));
    };
  }

  // "group ID KEY RANKS RANK ROUNDS": a barrier and an allgather of the sub-group in each
  std::string subGroup(std::istream& in) {
    void* const object = objects_[next<uint32_t>(in)];
    const auto key = next<std::string>(in);
    const auto ranks = next<uint32_t>(in);
    const auto rank = next<uint32_t>(in);
    const auto rounds = next<uint32_t>(in);
    for (uint32_t round = 0; round < rounds; ++round) {
      if (int32_t code = smem_shm_subgroup_barrier(object, key.c_str(), ranks, rank))
        return answer(code);
      const std::string mine = key + std::to_string(rank) + std::to_string(round % 10);
      std::string all(mine.size() * ranks, ' ');
      const int32_t code = smem_shm_subgroup_allgather(
          object, key.c_str(), ranks, rank, mine.data(), static_cast<uint32_t>(mine.size()),
          all.data(), static_cast<uint32_t>(all.size()));
      if (code != 0) return answer(code);
      std::string expected;
      for (uint32_t other = 0; other < ranks; ++other)
        expected += key + std::to_string(other) + std::to_string(round % 10);
      if (all != expected) return wrong(all + " instead of " + expected);
    }
    return answer(0);
  }

  void addLaterOnes() {
    commands_["group"] = [this](std::istream& in) { return subGroup(in); };
    // "number ID LIMIT"
    commands_["number"] = [this](std::istream& in) {
      void* const object = objects_[next<uint32_t>(in)];
      uint32_t number = 0;
      const int32_t code = smem_shm_atomic_alloc_value(object, next<uint32_t>(in), &number);
      return answer(code, std::to_string(number));
    };
    // When told, ends the process as programs do: all of it, from the callback.
    commands_["onexit"] = [this](std::istream& in) {
      return answer(smem_shm_register_exit(objects_[next<uint32_t>(in)], [](int status) {
        smem_uninit();
        std::exit(status);
      }));
    };
    commands_["tellexit"] = [this](std::istream& in) {
      void* const object = objects_[next<uint32_t>(in)];
      smem_shm_global_exit(object, next<int>(in));
      return answer(0);
    };
  }

  std::map<std::string, Command> commands_;
  std::map<uint32_t, void*> pools_;
  std::map<uint32_t, void*> objects_;
};

}  // namespace

int main() {
  SmemPeer peer;
  std::string line;
  while (std::getline(std::cin, line)) std::cout << peer.obey(line) << std::endl;
  smem_uninit();
  return 0;
}
