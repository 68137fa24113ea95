/* What MPI windows do between two processes of one host:
 *   mpirun -n 2 mpi_window SIZE...
 * Rank 0 prints lines "WINDOW OPERATION MODE SIZE NANOSECONDS": the time of one operation, the
 * median of several batches. MODE is "one" when each operation is flushed, "many" when a batch is.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBatches = 9, kMostInFlight = 32 };

static int compareTimes(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void operate(int put, char* local, int bytes, MPI_Win window) {
  if (put) {
    MPI_Put(local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
  } else {
    MPI_Get(local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
  }
}

/* About 32 MiB in a batch: long enough for the clock, short enough for a sweep. */
static long operationsOf(int bytes) {
  const long count = (32L << 20) / bytes;
  return count < 2 ? 2 : count > 5000 ? 5000 : count;
}

static double batchTime(int put, long inFlight, char* local, int bytes, MPI_Win window) {
  const long flushes = (operationsOf(bytes) + inFlight - 1) / inFlight;
  const double started = MPI_Wtime();
  for (long i = 0; i < flushes; ++i) {
    for (long j = 0; j < inFlight; ++j) operate(put, local, bytes, window);
    MPI_Win_flush(1, window);
  }
  return (MPI_Wtime() - started) / (double)(flushes * inFlight) * 1e9;
}

static void measure(const char* name, int put, int many, char* local, int bytes, MPI_Win window) {
  long inFlight = operationsOf(bytes);
  double times[kBatches];
  if (inFlight > kMostInFlight) inFlight = kMostInFlight;
  if (!many) inFlight = 1;
  batchTime(put, inFlight, local, bytes, window);
  for (int i = 0; i < kBatches; ++i) times[i] = batchTime(put, inFlight, local, bytes, window);
  qsort(times, kBatches, sizeof(times[0]), compareTimes);
  printf("%s %s %s %d %.3f\n", name, put ? "put" : "get", many ? "many" : "one", bytes,
         times[kBatches / 2]);
  fflush(stdout);
}

static void sweep(const char* name, int rank, char* local, char** sizes, MPI_Win window) {
  MPI_Win_lock_all(0, window);
  if (rank == 0) {
    for (; *sizes != NULL; ++sizes) {
      const int bytes = atoi(*sizes);
      for (int put = 1; put >= 0; --put) {
        for (int many = 0; many <= 1; ++many) measure(name, put, many, local, bytes, window);
      }
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, largest = 1;
  MPI_Win window;
  void* memory = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc; ++i) {
    const int bytes = atoi(argv[i]);
    if (bytes <= 0 || ranks != 2) {
      fprintf(stderr, "usage: mpirun -n 2 %s SIZE...\n", argv[0]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (bytes > largest) largest = bytes;
  }
  char* local = malloc((size_t)largest);
  if (local == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(local, 1, (size_t)largest);

  MPI_Win_allocate_shared(largest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, (size_t)largest);
  MPI_Barrier(MPI_COMM_WORLD);
  sweep("shared", rank, local, argv + 1, window);
  MPI_Win_free(&window);

  MPI_Win_allocate(largest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, (size_t)largest);
  MPI_Barrier(MPI_COMM_WORLD);
  sweep("own", rank, local, argv + 1, window);
  MPI_Win_free(&window);

  free(local);
  MPI_Finalize();
  return 0;
}
