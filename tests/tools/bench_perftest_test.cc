#include "bench/against/perftest.h"

#include <cstdlib>
#include <fstream>

#include "tools/fake_host.h"

namespace hmc::bench {
namespace {

using testing::HasSubstr;

class Perftest : public tool::FakeHost {
 protected:
  ~Perftest() override {
    unsetenv("HMC_RDMA_DEVICES");
    unsetenv("HMC_RDMA_GID_INDEX");
  }
  std::string folderOf(const std::string& device) const {
    return "sys/class/infiniband/" + device + "/ports/1/";
  }
  void addPort(const std::string& device, const std::string& state = "4: ACTIVE",
               const std::string& layer = "Ethernet") {
    write(folderOf(device) + "state", state);
    write(folderOf(device) + "link_layer", layer);
  }
  void addGid(const std::string& device, int index, const std::string& type,
              const std::string& gid) {
    write(folderOf(device) + "gids/" + std::to_string(index), gid);
    write(folderOf(device) + "gid_attrs/types/" + std::to_string(index), type);
  }
  Result<RdmaAddress> look() const { return findRdmaAddress(root()); }
};

constexpr const char* kLinkLocal = "fe80:0000:0000:0000:fc3f:a9ff:fe54:b588";
constexpr const char* kIpv4 = "0000:0000:0000:0000:0000:ffff:0a08:0001";
constexpr const char* kIpv6 = "fd00:0000:0000:0000:0000:0000:0000:0001";

TEST_F(Perftest, saysThatThereIsNoDevice) {
  EXPECT_THAT(look().status().message(), HasSubstr("no RDMA device"));
}

TEST_F(Perftest, usesTheRoceGidWithAnIpv4Address) {
  addPort("rxe0");
  addGid("rxe0", 0, "RoCE v2", kLinkLocal);
  addGid("rxe0", 1, "RoCE v2", kIpv6);
  addGid("rxe0", 2, "IB/RoCE v1", kIpv4);
  auto address = look();
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->gidIndex, 1) << "the first that is routed";
  addGid("rxe0", 10, "RoCE v2", kIpv4);
  address = look();
  EXPECT_EQ(address->device, "rxe0");
  EXPECT_EQ(address->port, 1);
  EXPECT_EQ(address->gidIndex, 10);
}

TEST_F(Perftest, needsNoGidOnInfiniBand) {
  addPort("mlx5_0", "4: ACTIVE", "InfiniBand");
  addGid("mlx5_0", 0, "IB/RoCE v1", kLinkLocal);
  auto address = look();
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->gidIndex, std::nullopt);
}

TEST_F(Perftest, passesPortsThatAreDownOrNotWanted) {
  addPort("rxe0", "1: DOWN");
  EXPECT_THAT(look().status().message(), HasSubstr("no port of any RDMA device is active"));
  addPort("rxe1");
  addPort("rxe2");
  EXPECT_EQ(look()->device, "rxe1");
  setenv("HMC_RDMA_DEVICES", "rxe7,rxe2:1", 1);
  EXPECT_EQ(look()->device, "rxe2");
  setenv("HMC_RDMA_DEVICES", "rxe2:2", 1);
  EXPECT_THAT(look().status().message(), HasSubstr("HMC_RDMA_DEVICES"));
}

TEST_F(Perftest, takesTheGidThatTheSettingNames) {
  addPort("rxe0");
  addGid("rxe0", 1, "RoCE v2", kIpv4);
  setenv("HMC_RDMA_GID_INDEX", "3", 1);
  EXPECT_EQ(look()->gidIndex, 3);
}

TEST_F(Perftest, saysHowToInstallAProgramThatIsMissing) {
  install(kWriteBandwidth, "exit 0");
  EXPECT_THAT(findPerftest().message(), HasSubstr("ib_read_bw is not installed: apt install"));
  install(kReadBandwidth, "exit 0");
  install(kWriteLatency, "exit 0");
  EXPECT_TRUE(findPerftest().ok());
}

TEST_F(Perftest, startsBothEndsOnTheAddress) {
  const std::string asked = root() + "/asked";
  install(kWriteBandwidth,
          "case \"$*\" in *127.0.0.1) ;; *) exec tail -f /dev/null;; esac\n"
          "echo \"$*\" >" +
              asked +
              "\n"
              "echo '#bytes #iterations'; echo '64 500 1.0 0.5 0.004000'");
  auto each = perftestPerMessage({"rxe0", 2, 5}, {.bytes = 64, .messages = 500, .depth = 16});
  ASSERT_TRUE(each.ok()) << each.status().message();
  EXPECT_DOUBLE_EQ(*each, 250000);
  std::string words;
  std::getline(std::ifstream(asked) >> std::ws, words);
  for (const char* part : {"-d rxe0", "-i 2", "-x 5", "-s 64", "-n 500", "-t 16"})
    EXPECT_THAT(words, HasSubstr(part));
}

TEST_F(Perftest, triesOnceMoreWhenItHangs) {
  const std::string hung = root() + "/hung";
  install(kWriteBandwidth,
          "case \"$*\" in *127.0.0.1) ;; *) exec tail -f /dev/null;; esac\n"
          "mkdir " +
              hung +
              " 2>/dev/null && exec tail -f /dev/null\n"
              "echo '#bytes #iterations'; echo '64 500 1.0 0.5 0.004000'");
  auto each = perftestPerMessage({"rxe0", 1, 1}, {.timeout = std::chrono::seconds(5)});
  EXPECT_TRUE(each.ok()) << each.status().message();
}

TEST_F(Perftest, quotesAnEndThatFails) {
  install(kWriteLatency, "echo 'no such device' >&2; exit 1");
  auto times = perftestLatency({"rxe0", 1, 1}, {.program = kWriteLatency});
  EXPECT_THAT(times.status().message(), HasSubstr("no such device"));
}

TEST(ParsePerftest, takesTheFinerOfSpeedAndCount) {
  const std::string heading =
      "Device not recognized to implement inline feature. Disabling it\n---------\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
  auto large =
      parsePerMessage(heading + " 65536      300    62.50   50.00   \t\t   0.000800\n---\n");
  ASSERT_TRUE(large.ok());
  EXPECT_DOUBLE_EQ(*large, 1e9 / 800);
  large = parsePerMessage(heading + " 1048576    40    62.50   50.00   \t\t   0.000049\n");
  EXPECT_DOUBLE_EQ(*large, 1e9 / 50) << "the count has two digits";
  auto small = parsePerMessage(heading + " 8    10000    0.23   0.17   \t\t   0.022715\n");
  EXPECT_DOUBLE_EQ(*small, 1e9 / 22715) << "the speed has two digits";
  EXPECT_FALSE(parsePerMessage(heading).ok());
  EXPECT_FALSE(parsePerMessage(heading + " 8 10000 0 0 0\n").ok());
  EXPECT_FALSE(parsePerMessage("Couldn't connect to 127.0.0.1\n").ok());
}

TEST(ParsePerftest, readsMicroseconds) {
  const std::string heading =
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
      "Correlation coefficient r^2: 0.759901 < 0.9\n";
  auto times = parseLatency(heading + " 8 1000 0.90 5.10 1.10 1.20 0.10 2.20 5.10\n");
  ASSERT_TRUE(times.ok());
  EXPECT_DOUBLE_EQ(1100, times->p50);
  EXPECT_DOUBLE_EQ(2200, times->p99);
  EXPECT_DOUBLE_EQ(5100, times->p999);
  EXPECT_FALSE(parseLatency(heading + " 8 1000 0.9\n").ok());
  EXPECT_FALSE(parseLatency("").ok());
}

}  // namespace
}  // namespace hmc::bench
