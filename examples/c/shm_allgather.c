/*
 * Everyone tells everyone its process id, and reads what the others put into their memory: host
 * memory, so on a machine with an accelerator set CUDA_VISIBLE_DEVICES=-1. There, slots are for
 * kernels.
 *
 *   shm_allgather tcp://127.0.0.1:7000 8
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "smem_shm.h"

static const uint64_t SIZE = (uint64_t)2 << 20;

static void check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s: %s\n", what, smem_get_last_err_msg());
  exit(1);
}

static int run(const char* url, uint32_t ranks, uint32_t rank) {
  smem_shm_config_t config;
  void* base = NULL;
  uint32_t reach = 0, peer;
  int64_t mine = getpid(), *all = calloc(ranks, sizeof(*all));

  check(smem_init(0) == 0, "smem_init");
  check(smem_shm_config_init(&config) == 0, "smem_shm_config_init");
  check(smem_shm_init(url, ranks, rank, 0, &config) == 0, "smem_shm_init");
  smem_shm_t memory = smem_shm_create(0, ranks, rank, SIZE, SMEMS_DATA_OP_MTE, 0, &base);
  check(memory != NULL, "smem_shm_create");
  check(smem_shm_get_global_rank(memory) == rank, "smem_shm_get_global_rank");
  check(smem_shm_get_global_rank_size(memory) == ranks, "smem_shm_get_global_rank_size");
  check(smem_shm_set_extra_context(memory, &mine, sizeof(mine)) == 0, "smem_shm_set_extra_context");

  check(smem_shm_control_allgather(memory, (const char*)&mine, sizeof(mine), (char*)all,
                                   (uint32_t)(ranks * sizeof(mine))) == 0,
        "smem_shm_control_allgather");
  check(all[rank] == mine, "our own number is not in its place");

  /* On one host all slots are mapped: write our own, read the others'. */
  memcpy((char*)base + rank * SIZE, &mine, sizeof(mine));
  check(smem_shm_control_barrier(memory) == 0, "smem_shm_control_barrier");
  for (peer = 0; peer < ranks; ++peer) {
    check(smem_shm_topology_can_reach(memory, peer, &reach) == 0, "smem_shm_topology_can_reach");
    if (reach & SMEMS_DATA_OP_MTE)
      check(memcmp((char*)base + peer * SIZE, &all[peer], sizeof(mine)) == 0,
            "a peer's number is not in its slot");
  }
  /* Nobody takes its memory away while others read. */
  check(smem_shm_control_barrier(memory) == 0, "smem_shm_control_barrier");
  check(smem_shm_destroy(memory, 0) == 0, "smem_shm_destroy");
  smem_shm_uninit(0);
  smem_uninit();
  free(all);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: shm_allgather tcp://IPv4:port RANKS\n");
    return 2;
  }
  int ranks = atoi(argv[2]), failed = 0, status;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) exit(run(argv[1], (uint32_t)ranks, (uint32_t)rank));
    failed += child < 0;
  }
  while (wait(&status) > 0) failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  printf("%d ranks, %d failed\n", ranks, failed);
  return failed != 0;
}
