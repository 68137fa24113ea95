/*
 * Ranks in a ring: everyone writes into the slot of the next rank, then reads back what the
 * previous one wrote into its own. In all four directions of a copy, and with a table of rows.
 *
 *   bm_ring tcp://127.0.0.1:7000 8        ranks 0 to 7, rank 0 serves the store
 *   bm_ring tcp://127.0.0.1:7000 8 auto   the library chooses ranks, and who serves the store
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "smem_bm.h"
#include "smem_shm.h"

enum { PART = 4096, ROWS = 16, WIDTH = 64, PITCH = 256 };
static const uint64_t SLOT = (uint64_t)4 << 20;

static void check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s: %s\n", what, smem_get_last_err_msg());
  exit(1);
}

static void fill(unsigned char* to, uint32_t rank, unsigned salt) {
  for (int i = 0; i < PART; ++i) to[i] = (unsigned char)(rank * 31 + salt * 7 + (unsigned)i);
}

/* What to send, and where what comes is read: memory of the host, or of the device (the last bytes
 * of our own slot). */
static void ring(smem_bm_t pool, smem_shm_t all, uint32_t rank, uint32_t ranks, unsigned salt,
                 smem_bm_copy_type out, smem_bm_copy_type in) {
  unsigned char sent[PART], got[PART], expected[PART];
  uint32_t next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  char* target = (char*)smem_bm_ptr(pool, (uint16_t)next) + (uint64_t)salt * PART;
  char* own = (char*)smem_bm_ptr(pool, (uint16_t)rank);
  char* device = own + SLOT - PART;
  fill(sent, rank, salt);
  fill(expected, previous, salt);
  if (out == SMEMB_COPY_L2G)
    check(smem_bm_copy(pool, sent, device, PART, SMEMB_COPY_H2G, 0) == 0, "fill device memory");
  check(smem_bm_copy(pool, out == SMEMB_COPY_L2G ? (void*)device : sent, target, PART, out, 0) == 0,
        "write");
  check(smem_shm_control_barrier(all) == 0, "barrier");
  own += (uint64_t)salt * PART;
  check(smem_bm_copy(pool, own, in == SMEMB_COPY_G2L ? (void*)device : got, PART, in, 0) == 0,
        "read");
  if (in == SMEMB_COPY_G2L)
    check(smem_bm_copy(pool, device, got, PART, SMEMB_COPY_G2H, 0) == 0, "read device memory");
  check(memcmp(got, expected, PART) == 0, "what the previous rank wrote is not there");
}

/* The left WIDTH bytes of each row of a table. */
static void rows(smem_bm_t pool, smem_shm_t all, uint32_t rank, uint32_t ranks) {
  static unsigned char table[ROWS * PITCH], got[ROWS * WIDTH];
  char* next = (char*)smem_bm_ptr(pool, (uint16_t)((rank + 1) % ranks)) + (1 << 20);
  char* own = (char*)smem_bm_ptr(pool, (uint16_t)rank) + (1 << 20);
  memset(table, (int)rank + 1, sizeof(table));
  check(smem_bm_copy_2d(pool, table, PITCH, next, PITCH, WIDTH, ROWS, SMEMB_COPY_H2G, 0) == 0,
        "write rows");
  check(smem_shm_control_barrier(all) == 0, "barrier");
  check(smem_bm_copy_2d(pool, own, PITCH, got, WIDTH, WIDTH, ROWS, SMEMB_COPY_G2H, 0) == 0,
        "read rows");
  for (int i = 0; i < ROWS * WIDTH; ++i) {
    check(got[i] == (rank + ranks - 1) % ranks + 1, "a row is not there");
  }
}

static int run(const char* url, uint32_t ranks, int rankOrAuto) {
  smem_bm_config_t bm;
  smem_shm_config_t shm;
  void *slot = NULL, *symmetric = NULL;

  check(smem_init(0) == 0, "smem_init");
  check(smem_bm_config_init(&bm) == 0, "smem_bm_config_init");
  bm.autoRanking = rankOrAuto < 0;
  if (rankOrAuto >= 0) bm.rankId = (uint16_t)rankOrAuto;
  check(smem_bm_init(url, ranks, 0, &bm) == 0, "smem_bm_init");
  uint32_t rank = smem_bm_get_rank_id();
  smem_bm_t pool = smem_bm_create(0, 0, SMEMB_DATA_OP_SDMA, 0, SLOT, 0);
  check(pool != NULL, "smem_bm_create");
  check(smem_bm_join(pool, 0, &slot) == 0, "smem_bm_join");
  check(slot == smem_bm_ptr(pool, (uint16_t)rank), "the slot is not at its address");
  check((char*)slot == (char*)smem_bm_ptr(pool, 0) + rank * SLOT, "the slots are not in order");

  /* Barriers come from a shared object, on the same store. */
  check(smem_shm_config_init(&shm) == 0, "smem_shm_config_init");
  shm.startConfigStore = false;
  check(smem_shm_init(url, ranks, rank, 0, &shm) == 0, "smem_shm_init");
  smem_shm_t all =
      smem_shm_create(0, ranks, rank, (uint64_t)2 << 20, SMEMS_DATA_OP_MTE, 0, &symmetric);
  check(all != NULL, "smem_shm_create");

  ring(pool, all, rank, ranks, 0, SMEMB_COPY_H2G, SMEMB_COPY_G2H);
  ring(pool, all, rank, ranks, 1, SMEMB_COPY_L2G, SMEMB_COPY_G2L);
  rows(pool, all, rank, ranks);
  check(smem_shm_control_barrier(all) == 0, "barrier");

  check(smem_shm_destroy(all, 0) == 0, "smem_shm_destroy");
  smem_shm_uninit(0);
  smem_bm_destroy(pool);
  smem_bm_uninit(0);
  smem_uninit();
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: bm_ring tcp://IPv4:port RANKS [auto]\n");
    return 2;
  }
  int ranks = atoi(argv[2]), failed = 0, status;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) exit(run(argv[1], (uint32_t)ranks, argc > 3 ? -1 : rank));
    failed += child < 0;
  }
  while (wait(&status) > 0) failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  printf("%d ranks, %d failed\n", ranks, failed);
  return failed != 0;
}
