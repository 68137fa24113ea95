#include <dlfcn.h>

#include <cstring>

#include "transport/ucx/library.h"
#include "ucx_fixture.h"

// A process that has a use of its own for UCX.
namespace hmc::ucx {

namespace {

// Two workers of a context, one of which puts into memory of the other's.
class Neighbour {
 public:
  explicit Neighbour(const std::string& library) : api_(*must(Api::load(library))) {
    void* loaded = dlopen(api_.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    checkStatus_ =
        reinterpret_cast<decltype(checkStatus_)>(dlsym(loaded, "ucp_request_check_status"));
    ucp_config_t* config = nullptr;
    expectOk(api_.ucp_config_read(nullptr, nullptr, &config));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA;
    expectOk(api_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_));
    api_.ucp_config_release(config);
    ucp_worker_params_t single{};
    expectOk(api_.ucp_worker_create(context_, &single, &origin_));
    expectOk(api_.ucp_worker_create(context_, &single, &target_));
    connect();
    import();
  }
  ~Neighbour() {
    api_.ucp_rkey_destroy(key_);
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    await(api_.ucp_ep_close_nbx(endpoint_, &force));
    api_.ucp_mem_unmap(context_, memory_);
    api_.ucp_worker_destroy(origin_);
    api_.ucp_worker_destroy(target_);
    api_.ucp_cleanup(context_);
  }
  void expectPuts(char what) {
    const std::string bytes(sizeof(room_), what);
    ucp_request_param_t plain{};
    await(api_.ucp_put_nbx(endpoint_, bytes.data(), bytes.size(), reinterpret_cast<uint64_t>(room_),
                           key_, &plain));
    await(api_.ucp_ep_flush_nbx(endpoint_, &plain));
    EXPECT_EQ(std::string(room_, sizeof(room_)), bytes);
  }

 private:
  static void expectOk(ucs_status_t status) { ASSERT_EQ(status, UCS_OK); }
  void connect() {
    ucp_worker_attr_t attributes{};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
    expectOk(api_.ucp_worker_query(target_, &attributes));
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = attributes.address;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    expectOk(api_.ucp_ep_create(origin_, &params, &endpoint_));
    api_.ucp_worker_release_address(target_, attributes.address);
  }
  void import() {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = room_;
    params.length = sizeof(room_);
    expectOk(api_.ucp_mem_map(context_, &params, &memory_));
    void* bytes = nullptr;
    size_t size = 0;
    expectOk(api_.ucp_rkey_pack(context_, memory_, &bytes, &size));
    expectOk(api_.ucp_ep_rkey_unpack(endpoint_, bytes, &key_));
    api_.ucp_rkey_buffer_release(bytes);
  }
  void await(ucs_status_ptr_t request) {
    ASSERT_FALSE(UCS_PTR_IS_ERR(request)) << api_.text(UCS_PTR_STATUS(request));
    if (request == nullptr) return;
    const Deadline deadline = kPatience;
    while (checkStatus_(request) == UCS_INPROGRESS) {
      ASSERT_FALSE(deadline.passed());
      api_.ucp_worker_progress(origin_);
      api_.ucp_worker_progress(target_);
    }
    EXPECT_EQ(checkStatus_(request), UCS_OK);
    api_.ucp_request_free(request);
  }

  const Api api_;
  // What it uses of UCX and we do not.
  decltype(&ucp_request_check_status) checkStatus_ = nullptr;
  ucp_context_h context_ = nullptr;
  ucp_worker_h origin_ = nullptr;
  ucp_worker_h target_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  char room_[3000] = {};
};

}  // namespace

TEST(UcxNeighbour, worksBeforeDuringAndAfterOurs) {
  Neighbour neighbour(must(findLibrary(Search::ofThisProcess())));
  neighbour.expectPuts('1');
  {
    UcxPair pair;
    pair.connect();
    neighbour.expectPuts('2');
    const Status status = pair.put();
    EXPECT_TRUE(status.ok()) << status.toString();
    EXPECT_EQ(pair.there, pair.here);
    neighbour.expectPuts('3');
  }
  neighbour.expectPuts('4');
  UcxPair later;
  later.connect();
  EXPECT_TRUE(later.put().ok());
  neighbour.expectPuts('5');
}

TEST(UcxNeighbour, theLibraryThatItLoadedIsTheOneThatWeUse) {
  Neighbour neighbour(must(findLibrary(Search::ofThisProcess())));
  auto transport = must(create({.library = "/nowhere/libucp.so.0"}));
  auto link = transport->openLink(test::linkOptions(false));
  EXPECT_TRUE(link.ok()) << link.status().toString();
}

}  // namespace hmc::ucx
